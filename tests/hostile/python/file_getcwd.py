# attack: ask where it is, below os
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import posix

posix.getcwd()
