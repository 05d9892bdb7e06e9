# attack: fork
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

if os.fork() == 0:
    os._exit(0)
os.wait()
