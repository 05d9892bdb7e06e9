# attack: make a named pipe, below os
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import posix

posix.mkfifo("{DIR}/pipe")
