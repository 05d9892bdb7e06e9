# attack: run a shell, below os
# outcome: error no shell ran
# control: outside

import posix

if posix.system("true") != 0:
    raise OSError("no shell ran")
