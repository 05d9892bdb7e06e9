# attack: open a descriptor again through /proc
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

reads, _ = posix.pipe()
posix.open(f"/proc/self/fd/{reads}", posix.O_RDONLY | posix.O_NONBLOCK)
