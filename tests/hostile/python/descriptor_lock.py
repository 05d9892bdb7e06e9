# attack: lock what others may want
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import fcntl

try:
    file = open("{DIR}/file", "r+")
except PermissionError:
    file = 0
fcntl.flock(file, fcntl.LOCK_EX)
