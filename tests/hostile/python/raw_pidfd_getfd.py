# attack: take a descriptor of the own process by its handle
# outcome: killed (SIGSYS)
# control: outside
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


try:
    handle = call(434, os.getpid(), 0)
except PermissionError:
    handle = 0
call(438, handle, 0, 0)
