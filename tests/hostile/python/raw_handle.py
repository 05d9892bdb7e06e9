# attack: take the handle of a file past path checks
# outcome: killed (SIGSYS)
# control: none: some file systems have no handles
# preload: ctypes

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *arguments):
    arguments = [ctypes.c_long(argument) if type(argument) is int else argument for argument in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


handle = (ctypes.c_uint * 40)(128)
call(303, -100, b"/", handle, ctypes.byref(ctypes.c_int()), 0)
