# attack: ask for the host's name
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.uname()
