# attack: ask for the first process
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside as root

import os

os.kill(1, 0)
