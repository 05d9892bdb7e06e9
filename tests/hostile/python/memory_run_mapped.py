# attack: run machine code in a mapping made for it
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


libc.memmove.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
page = call(9, 0, 4096, 7, 0x22, -1, 0)
libc.memmove(page, b"\x31\xc0\xc3", 3)
assert ctypes.CFUNCTYPE(ctypes.c_int)(page)() == 0
