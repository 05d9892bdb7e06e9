# attack: find other processes by their numbers
# outcome: error no other process was found
# control: outside

import os


def lives(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


near = range(max(os.getpid() - 200, 2), os.getpid() + 200)
found = [pid for pid in near if pid != os.getpid() and lives(pid)]
assert found or lives(os.getppid()), "no other process was found"
