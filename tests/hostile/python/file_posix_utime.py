# attack: set the times of a file, below os
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import posix

posix.utime("{DIR}/file", (0, 0))
