# attack: hide clone's flags in the upper half of the word
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: what it would do outside is fork without end of the test
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


if call(56, (1 << 32) | 17, 0, 0, 0, 0) == 0:
    call(60, 0)
