# attack: read a link of /proc, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.readlink("/proc/self/cwd")
