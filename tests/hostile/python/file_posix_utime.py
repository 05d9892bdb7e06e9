# attack: set the times of a file, below os
# outcome: error not available in the Lockhouse sandbox
# control: outside

import posix

posix.utime("{DIR}/file", (0, 0))
