# attack: fork with a terminal
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

pid, terminal = os.forkpty()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
