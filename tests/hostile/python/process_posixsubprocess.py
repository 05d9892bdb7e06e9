# attack: run a program, below subprocess
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import subprocess
import sys

import _posixsubprocess

# The number of arguments differs from version to version: let subprocess give them.
class Popen(subprocess.Popen):
    def __init__(self, *args, **named):
        original = getattr(subprocess.Popen.__init__, "__wrapped__", subprocess.Popen.__init__)
        original(self, *args, **named)


subprocess._USE_VFORK = subprocess._USE_POSIX_SPAWN = False
assert Popen(["/bin/true"]).wait() == 0
