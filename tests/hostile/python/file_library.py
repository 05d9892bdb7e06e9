# attack: load a native library
# outcome: error cannot open shared object file: Operation not permitted
# control: outside
# preload: ctypes

import _ctypes

_ctypes.dlopen("libresolv.so.2", 2)
