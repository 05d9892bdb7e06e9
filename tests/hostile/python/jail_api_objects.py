# attack: change objects by their memory
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside
# preload: ctypes

import ctypes
import posix

# An integer is changed where it stands: the interpreter's own checks end there, the kernel's do not.
number = int("1180591620717411303424")
ctypes.c_uint32.from_address(id(number) + object.__basicsize__ + 8).value ^= 1
assert number == 1180591620717411303425
posix.open("{DIR}/file", 0)
