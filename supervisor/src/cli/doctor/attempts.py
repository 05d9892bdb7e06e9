# What code must not be able to do, through libc where there is a way past the library's own answer.
import ctypes
import os
import socket

outcomes = {}


def attempt(name, action):
    try:
        action()
    except BaseException as error:
        outcomes[name] = f"refused: {type(error).__name__}"
    else:
        outcomes[name] = "succeeded"


def raw(number, *arguments):
    # System call numbers of x86-64.
    if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


attempt("read a file", lambda: raw(2, b"/proc/self/status", 0))
attempt("write a file", lambda: raw(2, b"/tmp/lockhouse-doctor", 0o101, 0o600))
attempt("look at a file", lambda: raw(4, b"/etc/passwd", ctypes.create_string_buffer(256)))
attempt("open an internet socket", lambda: raw(41, socket.AF_INET, socket.SOCK_STREAM, 0))
attempt("open a path-named socket", lambda: raw(41, socket.AF_UNIX, socket.SOCK_STREAM, 0))
attempt("start a process", lambda: raw(57))
attempt("execute a program", lambda: raw(59, b"/bin/true", None, None))
attempt("signal its parent", lambda: raw(62, os.getppid(), 0))
attempt("make memory executable", lambda: raw(9, None, 4096, 7, 0x22, -1, 0))
attempt("lift a limit", lambda: raw(302, 0, 7, ctypes.create_string_buffer(16), None))
attempt("control: tell its own number", lambda: raw(39))
outcomes
