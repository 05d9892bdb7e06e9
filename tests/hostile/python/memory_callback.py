# attack: make a native callback, which needs new code
# outcome: limit memory limit of
# outcome: error not available in the Lockhouse sandbox
# control: outside
# preload: ctypes

import ctypes

# libffi writes machine code for it, or maps a file that holds some.
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda number: number + 1)
callback(1)
