# attack: have signals sent to another process when input comes
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import fcntl
import os

reads, writes = os.pipe()
fcntl.fcntl(reads, fcntl.F_SETOWN, os.getppid())
