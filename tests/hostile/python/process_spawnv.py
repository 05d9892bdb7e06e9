# attack: spawn a program by fork and exec in turn
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

assert os.spawnv(os.P_WAIT, "/bin/true", ["true"]) == 0
