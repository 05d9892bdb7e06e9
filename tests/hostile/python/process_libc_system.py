# attack: run a shell with the C library
# outcome: error no shell ran
# control: outside
# preload: ctypes

import ctypes

if ctypes.CDLL(None).system(b"true") != 0:
    raise OSError("no shell ran")
