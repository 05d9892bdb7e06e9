# attack: fill the disk
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: none: it would fill the disk
# limits: timeout_seconds = 20, memory_mib = 64

import posix

descriptor = posix.open("{DIR}/new", posix.O_CREAT | posix.O_WRONLY)
while True:
    posix.write(descriptor, b"x" * (1 << 20))
