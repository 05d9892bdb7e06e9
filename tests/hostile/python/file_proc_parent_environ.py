# attack: read the environment of the parent through /proc
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os
import posix

environment = posix.read(posix.open(f"/proc/{os.getppid()}/environ", os.O_RDONLY), 1 << 16)
assert environment
