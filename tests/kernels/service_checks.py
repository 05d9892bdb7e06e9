"""Checks of `lockhouse serve --http` on one kernel: its answers, also after its front or its signer was killed, and their seals."""

import os
import signal

from guest import USER, group, judge, read, user_name, wait_until
from http_service import FRONT, SIGNER, Service, descriptors_of, is_whole, status_of

# What each process is, if root starts the service: its user, and its threads.
ACCOUNTS = {FRONT: (61501, 2), SIGNER: (61502, 1)}
NONE = "0000000000000000"
SEALED = {"Seccomp": "2", "NoNewPrivs": "1", "CapInh": NONE, "CapPrm": NONE, "CapEff": NONE, "CapAmb": NONE, "Groups": ""}
NAMESPACES = ("net", "ipc", "uts", "mnt", "cgroup")
INVALID_TOKEN = "lh_" + "a" * 49


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
