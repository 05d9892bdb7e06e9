# attack: load a program into the kernel
# outcome: killed (SIGSYS)
# control: none: most hosts refuse it to everybody but root
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


call(321, 0, ctypes.create_string_buffer(128), 128)
