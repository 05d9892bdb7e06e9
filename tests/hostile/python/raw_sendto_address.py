# attack: send to an address by a system call
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: a connected socket ignores or refuses it outside
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


pair = (ctypes.c_int * 2)()
call(53, 1, 1, 0, pair)
call(44, pair[0], b"x", 1, 0, b"\1\0{DIR}/socket", 110)
