# attack: take a handle to the parent
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.close(os.pidfd_open(os.getppid()))
