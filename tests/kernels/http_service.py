"""Checks of `lockhouse serve --http` on one kernel: its answers, and what the kernel shows of its front and its signer."""

import http.client
import itertools
import json
import os
import re
import shutil
import signal
import ssl

from guest import BINARIES, USER, group, judge, lockhouse_text, read, start, user_name, wait_until, write

FRONT, SIGNER = "http-front", "tls-signer"
# What each process is, if root starts the service: its user, and its threads.
ACCOUNTS = {FRONT: (61501, 2), SIGNER: (61502, 1)}
NONE = "0000000000000000"
SEALED = {"Seccomp": "2", "NoNewPrivs": "1", "CapInh": NONE, "CapPrm": NONE, "CapEff": NONE, "CapAmb": NONE, "Groups": ""}
NAMESPACES = ("net", "ipc", "uts", "mnt", "cgroup")
PROGRAMS = {"python": "[n * n for n in range(200)]", "typescript": "Array.from({length: 200}, (_, n) => n * n)"}
ANSWER = json.dumps([n * n for n in range(200)], separators=(",", ":"))
INVALID_TOKEN = "lh_" + "a" * 49
CERTIFICATE = "/tls/daemon"
numbers = itertools.count()


class Service:
    """A running `lockhouse serve --http` with a token, and with TLS or without."""

    def __init__(self, user, is_tls, within=None, program=f"{BINARIES}/lockhouse"):
        self.user, self.is_tls = user, is_tls
        name = f"service-{next(numbers)}"
        self.log = f"/tmp/{name}.log"
        tls = f'[http.tls]\ncertificate = "{CERTIFICATE}.pem"\nkey = "{self.key_of(name)}"\n' if is_tls else ""
        write(f"/tmp/{name}.toml", f'[http]\nlisten = ["127.0.0.1:0"]\n{tls}')
        self.token = lockhouse_text("token", "create", name, program=program, user=user).strip()
        with open(self.log, "w") as log:
            command = [program, "--config", f"/tmp/{name}.toml", "serve", "--http"]
            self.engine = start(command, user=user, within=within, stderr=log)
        listening = lambda: re.search(r"listening at (https?)://127\.0\.0\.1:(\d+)", read(self.log))
        found = wait_until(lambda: listening() or self.engine.poll() is not None, 120)
        if not isinstance(found, re.Match):
            self.engine.kill()
            raise RuntimeError(f"the service does not listen: {read(self.log)}")
        self.scheme, self.port = found[1], int(found[2])

    def key_of(self, name):
        """Copies the key of the certificate, so that the user of the service alone can read it."""
        path = f"/tmp/{name}.key"
        shutil.copyfile(f"{CERTIFICATE}.key", path)
        os.chmod(path, 0o600)
        os.chown(path, self.user, self.user)
        return path

    def child(self, command):
        """Returns the process id of the front or the signer, or None. What has ended has no command line."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if command_of(pid)[1:2] == [command] and status_of(pid).get("PPid") == str(self.engine.pid):
                return int(pid)
        return None

    def connect(self):
        """Opens a connection, with the handshake of TLS."""
        if self.is_tls:
            trusted = ssl.create_default_context(cafile=f"{CERTIFICATE}.pem")
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=120, context=trusted)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.connect()
        return connection

    def ask(self, language="python", token=None, over=None):
        """Runs a program over a connection, by default one of its own. Returns the HTTP status and the body as JSON."""
        request, headers = request_of(language)
        headers["Authorization"] = f"Bearer {token or self.token}"
        connection = over or self.connect()
        connection.request("POST", "/mcp", request, headers)
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        if not over:
            connection.close()
        return answer

    def kill(self, command):
        """Kills the front or the signer, waits until it has ended, and returns its process id."""
        pid = self.child(command)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not command_of(pid))
        return pid

    def stop(self, number=signal.SIGTERM):
        """Ends the engine with a signal. Returns its exit status, how many of its processes ran, and which still run after it."""
        children = [pid for command in (FRONT, SIGNER) if (pid := self.child(command))]
        self.engine.send_signal(number)
        status = self.engine.wait(120)
        left = lambda: [pid for pid in children if command_of(pid)]
        wait_until(lambda: not left())
        return status, len(children), left()


def request_of(language):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "kernels", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "run_code", "arguments": {"language": language, "code": PROGRAMS[language]}, "_meta": meta}
    headers = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run_code",
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}), headers


def is_whole(answer):
    """Whether an answer is the whole result of the program, without an error."""
    status, body = answer
    result = body.get("result", {})
    texts = [part.get("text") for part in result.get("content", [])]
    return (status, result.get("isError"), texts) == (200, False, [ANSWER])


def command_of(pid):
    """Returns the command line of a process, which is empty for one that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")[:-1]
    except OSError:
        return []


def status_of(pid):
    lines = read(f"/proc/{pid}/status").splitlines()
    return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}


def descriptors_of(pid):
    """Returns the kinds of the descriptors of a process, such as socket; of a file, its path."""
    kinds = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            kinds.add(os.readlink(f"/proc/{pid}/fd/{number}").split(":")[0])
        except FileNotFoundError:
            pass  # It has been closed.
    return kinds


def faults_of(service, command, has_namespaces, pid=None):
    """Returns what the kernel shows of the front or the signer, or of the process `pid`, that a sealed process must not have."""
    pid, engine = pid or service.child(command), service.engine.pid
    account, threads = ACCOUNTS[command]
    ids = " ".join([str(service.user or account)] * 4)
    expected = SEALED | {"Uid": ids, "Gid": ids, "Threads": str(threads)}
    # An ordinary user can empty the bounding set in a user namespace of its own alone.
    if has_namespaces or not service.user:
        expected["CapBnd"] = NONE
    faults = {}
    for task in [pid, *os.listdir(f"/proc/{pid}/task")]:
        status = status_of(f"{pid}/task/{task}")
        # Another thread of the engine may have ended.
        if "Seccomp" in status or task == pid:
            faults |= {name: status.get(name) for name, value in expected.items() if status.get(name) != value}
    kinds = NAMESPACES + (("user",) if service.user else ())
    shared = {kind for kind in kinds if os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/{engine}/ns/{kind}")}
    found = {
        "descriptors": descriptors_of(pid) - {"socket", "pipe", "anon_inode", "/dev/null"},
        # Without namespaces of its own it has those of the engine, and the root directory of the host.
        "namespaces": shared if has_namespaces else set(kinds) - shared,
        "root": os.listdir(f"/proc/{pid}/root") if has_namespaces else [],
        "environment": read(f"/proc/{pid}/environ"),
    }
    return faults | {name: value for name, value in found.items() if value}


def judge_control(title, service):
    """Checks that `faults_of` finds in the engine, which is not sealed, what it must not find in the others."""
    expected = {"Seccomp", "NoNewPrivs", "CapBnd", "descriptors", "namespaces", "root", "environment"}
    if not service.user:
        expected |= {"Uid", "Gid", "CapPrm", "CapEff"}
    # The engine has any number of threads.
    faults = set(faults_of(service, FRONT, True, service.engine.pid)) - {"Threads"}
    judge(f"{title}: control, the engine is not sealed", faults == expected, sorted(faults ^ expected))


def judge_answer(check, answer, good=True, more=""):
    """Checks that an answer is whole. `good` is what else must hold, and `more` is reported with it."""
    shown = f"HTTP {answer[0]}, the whole result" if is_whole(answer) else str(answer)[:1000]
    judge(check, is_whole(answer) and good, f"{more}{shown}")


def judge_seal(check, service, command, has_namespaces=True):
    faults = faults_of(service, command, has_namespaces)
    judge(check, not faults, faults or "")


def judge_processes(title, service, has_namespaces):
    """Checks the answer to a program, and that each process of the service but the engine is sealed."""
    judge_answer(f"{title}: a whole answer", service.ask())
    judge_seal(f"{title}: the front is sealed", service, FRONT, has_namespaces)
    if service.is_tls:
        judge_seal(f"{title}: the signer is sealed", service, SIGNER, has_namespaces)


def judge_lost_front(title, service):
    """Kills the front: the next request, over a new connection, has its answer at the first attempt."""
    killed = service.kill(FRONT)
    answer = service.ask()
    now = service.child(FRONT)
    judge_answer(f"{title}: an answer after kill -9 of the front", answer, now not in (None, killed), f"{killed}, then {now}: ")
    judge_seal(f"{title}: the next front is sealed", service, FRONT)


def judge_lost_signer(title, service):
    """Kills the signer: open connections go on, and handshakes succeed as soon as there is another signer."""
    held = service.connect()
    killed = service.kill(SIGNER)
    judge_answer(f"{title}: an open connection after kill -9 of the signer", service.ask(over=held))
    refused = []

    def handshake():
        try:
            return service.connect()
        except OSError as error:
            refused.append(str(error))
            return None

    answer = service.ask(over=wait_until(handshake, 60))
    now = service.child(SIGNER)
    more = f"{killed}, then {now}, {len(refused)} handshakes failed: "
    judge_answer(f"{title}: a handshake after kill -9 of the signer", answer, now not in (None, killed), more)
    judge_seal(f"{title}: the next signer is sealed", service, SIGNER)


def check_service(user, is_tls):
    title = f"{'https' if is_tls else 'http'}, {user_name(user)}"
    service = Service(user, is_tls, within=group(title.replace(", ", "-"), user))
    try:
        judge_control(title, service)
        judge_processes(title, service, True)
        judge_answer(f"{title}: a whole answer in TypeScript", service.ask("typescript"))
        status, body = service.ask(token=INVALID_TOKEN)
        judge(f"{title}: another token", (status, body.get("error")) == (401, "invalid_token"), f"{status} {body}")
        judge_lost_front(title, service)
        if is_tls:
            judge_lost_signer(title, service)
        judge(f"{title}: ends with SIGTERM", (ended := service.stop()) == (0, 1 + is_tls, []), ended)
    finally:
        service.engine.kill()
    service = Service(user, is_tls)
    ended = service.stop(signal.SIGKILL)
    judge(f"{title}: a killed engine leaves no process", ended == (-signal.SIGKILL, 1 + is_tls, []), ended)


def check_services():
    for user in (0, USER):
        for is_tls in (False, True):
            check_service(user, is_tls)


def check_without_namespaces(title, **how):
    """Checks the service of an ordinary user to whom the host refuses namespaces."""
    service = Service(USER, True, **how)
    try:
        judge_processes(title, service, False)
    finally:
        service.stop()
