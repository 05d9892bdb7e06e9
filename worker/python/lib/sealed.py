"""Truths instead of riddles: what the seal refuses says so in words, also to code that catches the error.

Nothing here protects anything; the kernel does. Without this, `tempfile` would claim a missing directory, `os.walk` an
empty one, and an import "No module named".
"""

import builtins
import errno
import functools
import glob
import io
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
from importlib.machinery import BuiltinImporter, FrozenImporter

from lockhouse_calls import identifier, server_named
from lockhouse_servers import ServerFinder

PREFIX = "not available in the Lockhouse sandbox"
FILES = f"{PREFIX}: files cannot be opened; use a tool of an MCP server instead"
NETWORK = f"{PREFIX}: there is no network; use a tool of an MCP server instead"
PROCESSES = f"{PREFIX}: processes cannot be started; use a tool of an MCP server instead"
TEMPORARY = f"{PREFIX}: there are no temporary files; keep data in variables, io.BytesIO or io.StringIO"
SYSTEM = f"{PREFIX}: the operating system is out of reach; use a tool of an MCP server instead"
INPUT = f"{PREFIX}: there is no input; put the values into the code"

_REFUSED = (
    (FILES, os, "open listdir scandir walk mkdir makedirs remove unlink rmdir rename replace link symlink readlink "
                "chmod chown truncate utime chdir mkfifo"),
    (FILES, glob, "glob iglob"),
    (FILES, pathlib.Path, "glob rglob"),
    (PROCESSES, os, "system fork forkpty posix_spawn posix_spawnp execv execve execvp execvpe"),
    (PROCESSES, subprocess.Popen, "__init__"),
    (NETWORK, socket, "getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr create_connection create_server"),
    (TEMPORARY, tempfile, "_get_default_tempdir"),
)

_NETWORK_MODULES = frozenset(
    "requests httpx aiohttp urllib3 urllib.request http.client http.server ftplib smtplib imaplib poplib telnetlib "
    "websocket websockets ssl paramiko boto3 pycurl xmlrpc.client socketserver".split())
_PROCESS_MODULES = frozenset(
    "multiprocessing concurrent.futures.process concurrent.futures.interpreter pexpect".split())


def seal():
    """Puts the words in place. At the end of the preload: afterwards nothing can be imported from a file."""
    for words, owner, names in _REFUSED:
        for name in names.split():
            if hasattr(owner, name):
                setattr(owner, name, _refusal(getattr(owner, name), words, owner))
    for name in ("exists", "lexists", "isfile", "isdir"):
        setattr(os.path, name, _absence(getattr(os.path, name)))
    builtins.open = io.open = _opening(io.open)
    builtins.input = _refused_input
    builtins.help = _short_help
    socket.socket.__init__ = _connected_only(socket.socket.__init__)
    os.getcwd = lambda: "/"
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, ServerFinder, Sealed]


def _refusal(original, words, owner):
    @functools.wraps(original)
    def refused(*args, **kwargs):
        args = args[1:] if isinstance(owner, type) else args
        name = args[0] if args and owner is os and isinstance(args[0], (str, bytes, os.PathLike)) else None
        raise PermissionError(errno.EPERM, words, name)

    return refused


def _opening(original):
    @functools.wraps(original)
    def open(file, *args, **kwargs):
        if isinstance(file, int):  # A descriptor, such as the end of a pipe.
            return original(file, *args, **kwargs)
        raise PermissionError(errno.EPERM, FILES, os.fspath(file))

    return open


def _connected_only(original):
    @functools.wraps(original)
    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        if fileno is None:  # socketpair() gives a descriptor; event loops need it.
            raise PermissionError(errno.EPERM, NETWORK)
        original(self, family, type, proto, fileno)

    return __init__


def _refused_input(prompt="", /):
    raise EOFError(INPUT)


def _short_help(thing=None, /):
    """Prints the documentation of a thing."""  # pydoc would cost more than it is worth here.
    print(getattr(thing, "__doc__", None) or f"{thing!r} has no documentation")


_told = set()


def _absence(original):
    """False is right, and misleading: say once why, if it is the code that asks and not a library."""
    @functools.wraps(original)
    def absent(path):
        caller = sys._getframe(1)
        if str(caller.f_globals.get("__name__")).startswith("pathlib"):
            caller = caller.f_back
        if caller.f_code.co_filename == "<code>" and original.__name__ not in _told:
            _told.add(original.__name__)
            print(f"os.path.{original.__name__} is always False: {FILES}", file=sys.stderr)
        return False

    return absent


class Sealed:
    """The last finder: an import that the preload has not made."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None  # importlib.util.find_spec: a question, not an import.
        raise ModuleNotFoundError(_why_missing(fullname), name=fullname)


def _why_missing(name):
    top = name.partition(".")[0]
    if name in _NETWORK_MODULES or top in _NETWORK_MODULES:
        return f"No module named {name!r}: {NETWORK}"
    if name in _PROCESS_MODULES or top in _PROCESS_MODULES:
        return f"No module named {name!r}: processes cannot be started in the Lockhouse sandbox; use threads or asyncio"
    server = server_named(name)
    if server is not None:
        return f"No module named {name!r}: the MCP server is at mcp_tools.{identifier(server)}"
    return (f"No module named {name!r}: a sealed worker can import only what was loaded before it was sealed; "
            "an administrator can add modules under [python] preload in the configuration")
