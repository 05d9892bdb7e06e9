# attack: read what the kernel tells in /sys
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.listdir("/sys")
