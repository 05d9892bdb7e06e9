# attack: write to /dev/shm
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os
import posix

path = f"/dev/shm/lockhouse-{os.getpid()}"
posix.close(posix.open(path, os.O_CREAT | os.O_RDWR, 0o600))
posix.unlink(path)
