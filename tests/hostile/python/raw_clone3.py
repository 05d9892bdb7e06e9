# attack: fork by the call whose flags no filter can read
# outcome: error Function not implemented
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


arguments = (ctypes.c_uint64 * 11)()
arguments[4] = 17
if call(435, arguments, 88) == 0:
    call(60, 0)
os.wait()
