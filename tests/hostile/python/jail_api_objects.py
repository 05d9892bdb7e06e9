# attack: change objects by their memory
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside
# preload: ctypes

import ctypes
import posix

# An integer is changed in place: this defeats checks of the interpreter, not those of the kernel.
number = int("1180591620717411303424")
ctypes.c_uint32.from_address(id(number) + object.__basicsize__ + 8).value ^= 1
assert number == 1180591620717411303425
posix.open("{DIR}/file", 0)
