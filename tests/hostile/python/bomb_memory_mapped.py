# attack: map memory without end, past the interpreter
# outcome: error Cannot allocate memory
# control: none: it would take the machine down
# preload: ctypes
# limits: timeout_seconds = 20, memory_mib = 64

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_long
libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
for _ in range(1_000_000):
    if libc.mmap(None, 1 << 20, 3, 0x4022, -1, 0) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
