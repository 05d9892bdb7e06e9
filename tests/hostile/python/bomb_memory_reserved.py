# attack: map address space that is never touched
# outcome: error Cannot allocate memory
# control: none: outside it is free
# preload: ctypes
# limits: timeout_seconds = 20, memory_mib = 64

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_long
libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
if libc.mmap(None, 1 << 40, 0, 0x4022, -1, 0) == -1:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
