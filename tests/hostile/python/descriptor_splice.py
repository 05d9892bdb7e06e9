# attack: move data between pipes within the kernel
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

one, two = os.pipe(), os.pipe()
os.write(one[1], b"x")
os.splice(one[0], two[1], 1) if hasattr(os, "splice") else os.sendfile(two[1], os.open("{DIR}/file", 0), 0, 1)
