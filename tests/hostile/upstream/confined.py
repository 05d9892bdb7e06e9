"""An upstream server whose one tool tries what a confined server must not do.

`attempt` answers "done", or the name of the error. With `child` a process that the server starts does it instead.
"""

import ctypes
import errno
import json
import os
import socket
import stat
import subprocess
import sys

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


ATTEMPTS = {
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
