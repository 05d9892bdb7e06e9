# attack: move memory to a place of its choice
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
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


pages = call(9, 0, 8192, 3, 0x22, -1, 0)
call(25, pages, 4096, 4096, 3, pages + 4096)
