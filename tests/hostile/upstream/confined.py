"""An upstream server whose one tool tries what a confined server must not do.

`attempt` answers "done", or the name of the error. With `child` a process that the server starts does it instead.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading

SCHEMA = {
    "type": "object",
    "required": ["what"],
    "properties": {"what": {"type": "string"}, "target": {"type": "string"}, "child": {"type": "boolean"}},
}


def read(path):
    with open(path, "rb") as file:
        file.read()


def write(path):
    with open(path, "ab") as file:
        file.write(b"x")


def read_through_link(paths):
    secret, link = paths.split(":")
    os.symlink(secret, link)
    read(link)


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as stream:
        stream.connect(address)


def send(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"x", ("127.0.0.1", int(port)))


def pair(_):
    for end in socket.socketpair():
        end.close()


def netlink(_):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


def io_uring(_):
    number = 425  # io_uring_setup, on every architecture
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(number, 1, None)
    # Where there is such a call it finds the missing parameters.
    if ctypes.get_errno() not in (errno.EFAULT, errno.EINVAL):
        raise OSError(ctypes.get_errno(), "")


def privileges(_):
    """Fails unless there are none, and no way to more."""
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    if status["NoNewPrivs"] != "1" or int(status["CapEff"], 16) or int(status["CapPrm"], 16):
        raise OSError(errno.EPERM, "")


def descriptors(_):
    """Fails if any is open but the standard streams and the one that looks."""
    if len(os.listdir("/proc/self/fd")) > 4:
        raise OSError(errno.EMFILE, "")


LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {
        "shmget": 29, "shmctl": 31, "semget": 64, "semctl": 66, "msgget": 68, "msgctl": 71, "mq_open": 240,
        "mq_unlink": 241, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "kcmp": 312,
        "pidfd_send_signal": 424, "pidfd_open": 434, "clone": 56,
    },
    "aarch64": {
        "shmget": 194, "shmctl": 195, "semget": 190, "semctl": 191, "msgget": 186, "msgctl": 187, "mq_open": 180,
        "mq_unlink": 181, "add_key": 217, "request_key": 218, "keyctl": 219, "ioprio_set": 30, "kcmp": 272,
        "pidfd_send_signal": 424, "pidfd_open": 434, "clone": 220,
    },
}[os.uname().machine]
NEW = 0o1600  # IPC_CREAT, for this user alone.


def raw(name, *arguments):
    wide = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = LIBC.syscall(NUMBERS[name], *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def limits(pid):
    kind = resource.RLIMIT_CORE
    resource.prlimit(int(pid), kind, resource.prlimit(int(pid), kind))


def own_settings(_):
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    raw("ioprio_set", 1, 0, 0)


def own_child(_):
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    if child.wait() != -signal.SIGTERM:
        raise OSError(errno.ECHILD, "")


def join_group(pid):
    code = "import os, sys; os.setpgid(0, os.getpgid(int(sys.argv[1])))"
    if subprocess.run([sys.executable, "-c", code, str(pid)], capture_output=True).returncode:
        raise OSError(errno.EPERM, "")


def signal_owner(pid):
    with open(os.devnull) as file:
        fcntl.fcntl(file, fcntl.F_SETOWN, int(pid))


def pidfd_signal(pid):
    descriptor = raw("pidfd_open", int(pid), 0)
    try:
        raw("pidfd_send_signal", descriptor, 0, 0, 0)
    finally:
        os.close(descriptor)


CLONE_NEWUSER = 0x10000000
CLONE_NEWNS = 0x00020000


def in_child(enters):
    """Calls a function in a forked child, which it may change for good."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if enters() == 0 else ctypes.get_errno() or 1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "")


def mounts_in_user_namespace():
    """With a user namespace, the process has the capabilities for a mount namespace."""
    return LIBC.unshare(CLONE_NEWUSER) or LIBC.unshare(CLONE_NEWNS)


def cloned_user_namespace(_):
    pid = raw("clone", CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def queue(name):
    descriptor = raw("mq_open", name.encode(), os.O_CREAT | os.O_RDWR, 0o600, 0)
    os.close(descriptor)
    raw("mq_unlink", name.encode())


PROCESS_KEYRING = -2
supervisor = os.getppid

ATTEMPTS = {
    "limits": limits,
    "limits_of_supervisor": lambda _: limits(supervisor()),
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, int(pid), os.getpriority(os.PRIO_PROCESS, int(pid))),
    "priority_of_supervisor": lambda _: os.setpriority(os.PRIO_PROCESS, supervisor(), os.getpriority(os.PRIO_PROCESS, supervisor())),
    # Of a user that has none: without the filter this would change every process of the one who runs the test.
    "priority_of_user": lambda _: os.setpriority(os.PRIO_USER, 61499, 0),
    "scheduler": lambda pid: os.sched_setscheduler(int(pid), os.SCHED_OTHER, os.sched_param(0)),
    "scheduler_parameters": lambda pid: os.sched_setparam(int(pid), os.sched_param(0)),
    "processors": lambda pid: os.sched_setaffinity(int(pid), os.sched_getaffinity(0)),
    "io_priority": lambda pid: raw("ioprio_set", 1, int(pid), 0),
    "compare": lambda pid: raw("kcmp", os.getpid(), int(pid), 1, 0, 0),
    "signal_supervisor": lambda _: os.kill(supervisor(), 0),
    "pidfd_signal": pidfd_signal,
    "signal_owner": signal_owner,
    "join_group": join_group,
    "shared_memory": lambda _: raw("shmctl", raw("shmget", 0, 4096, NEW), 0, 0),
    "semaphores": lambda _: raw("semctl", raw("semget", 0, 1, NEW), 0, 0, 0),
    "messages": lambda _: raw("msgctl", raw("msgget", 0, NEW), 0, 0),
    "user_namespace": lambda _: in_child(mounts_in_user_namespace),
    "cloned_user_namespace": cloned_user_namespace,
    "thread": lambda _: threading.Thread(target=print, kwargs={"file": sys.stderr}).start(),
    "queue": queue,
    "add_key": lambda name: raw("add_key", b"user", name.encode(), b"x", 1, PROCESS_KEYRING),
    "keyring": lambda _: raw("keyctl", 0, PROCESS_KEYRING, 1),
    "own_settings": own_settings,
    "own_child": own_child,
    "read": read,
    "write": write,
    "list": os.listdir,
    "read_link": os.readlink,
    "truncate": lambda path: os.truncate(path, 0),
    "remove": os.remove,
    "make_directory": os.mkdir,
    "hard_link": lambda paths: os.link(*paths.split(":")),
    "rename": lambda paths: os.rename(*paths.split(":")),
    "read_through_link": read_through_link,
    "make_device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "execute": lambda path: subprocess.run([path], check=True),
    "signal": lambda pid: os.kill(int(pid), 0),
    "tcp": lambda port: connect(socket.AF_INET, ("127.0.0.1", int(port))),
    "udp": send,
    "unix": lambda path: connect(socket.AF_UNIX, path),
    "abstract": lambda name: connect(socket.AF_UNIX, "\0" + name),
    "pair": pair,
    "netlink": netlink,
    "io_uring": io_uring,
    "privileges": privileges,
    "descriptors": descriptors,
}


def attempt(what, target="", child=False):
    if child:
        words = [sys.executable, __file__, what, target]
        return subprocess.run(words, capture_output=True, text=True).stdout.strip()
    try:
        ATTEMPTS[what](target)
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def answer(method, params):
    if method == "initialize":
        server = {"name": "confined", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "attempt", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": attempt(**params["arguments"])}]}
    return None


if len(sys.argv) == 3:
    print(attempt(*sys.argv[1:]))
    sys.exit()

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    reply = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
