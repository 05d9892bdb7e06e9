# attack: open a device
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.read(posix.open("/dev/zero", posix.O_RDONLY), 1)
