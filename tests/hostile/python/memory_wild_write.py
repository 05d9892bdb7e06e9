# attack: write where nothing is
# outcome: killed (SIGSEGV)
# control: none: the control would crash as well
# preload: ctypes

import ctypes

ctypes.memset(8, 0, 8)
