# attack: take kernel memory by large pipes
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import fcntl
import os

reads, writes = os.pipe()
fcntl.fcntl(reads, fcntl.F_SETPIPE_SZ if hasattr(fcntl, "F_SETPIPE_SZ") else 1031, 1 << 16)
