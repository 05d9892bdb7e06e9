# attack: call the kernel as a 32-bit program, from a mapping made for it
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: kernels may leave it out
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
libc.memmove(page, b"\xb8\x14\x00\x00\x00\xcd\x80\xc3", 8)
ctypes.CFUNCTYPE(ctypes.c_int)(page)()
