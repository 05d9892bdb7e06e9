# attack: read the memory of a process
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


buffer = ctypes.create_string_buffer(8)
vector = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
call(310, os.getpid(), vector, 1, vector, 1, 0)
