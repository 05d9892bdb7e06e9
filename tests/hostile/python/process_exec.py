# attack: become another program
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

os.execv("/bin/true", ["true"])
