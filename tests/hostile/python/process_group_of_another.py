# attack: ask for the group of another process
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.getpgid(os.getppid())
