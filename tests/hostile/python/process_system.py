# attack: run a shell
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

if os.system("true") != 0:
    raise OSError("no shell ran")
