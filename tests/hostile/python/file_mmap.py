# attack: map a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside
# preload: mmap

import mmap
import posix

descriptor = posix.open("{DIR}/file", posix.O_RDWR)
mmap.mmap(descriptor, 0)[:5]
