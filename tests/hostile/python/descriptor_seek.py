# attack: seek in the standard input
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

try:
    descriptor = os.open("{DIR}/file", 0)
except PermissionError:
    descriptor = 0
os.lseek(descriptor, 0, os.SEEK_SET)
