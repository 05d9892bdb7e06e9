# attack: make a file in memory
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.memfd_create("x")
