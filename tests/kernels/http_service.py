"""A `lockhouse serve --http` inside a guest: starts it, sends it programs, and reads what the kernel shows of its processes."""

import http.client
import itertools
import json
import os
import re
import shutil
import signal
import ssl

from guest import BINARIES, lockhouse_text, read, start, wait_until, write

FRONT, SIGNER = "http-front", "tls-signer"
PROGRAMS = {"python": "[n * n for n in range(200)]", "typescript": "Array.from({length: 200}, (_, n) => n * n)"}
ANSWER = json.dumps([n * n for n in range(200)], separators=(",", ":"))
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
