# attack: ask whether the parent lives
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.kill(os.getppid(), 0)
