# attack: read a file with the C library
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside
# preload: ctypes

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
if not libc.fopen(b"{DIR}/file", b"r"):
    raise OSError(ctypes.get_errno(), "fopen gave nothing")
