# attack: read what a shell prints
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

assert os.popen("echo x").read()
