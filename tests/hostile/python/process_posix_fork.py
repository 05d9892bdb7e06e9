# attack: fork, below os
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import posix

if posix.fork() == 0:
    posix._exit(0)
posix.wait()
