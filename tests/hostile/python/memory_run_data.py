# attack: run machine code that was written as data
# outcome: killed (SIGSEGV)
# control: none: no processor runs data outside either
# preload: ctypes

import ctypes

code = ctypes.create_string_buffer(b"\x31\xc0\xc3")
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(code))()
