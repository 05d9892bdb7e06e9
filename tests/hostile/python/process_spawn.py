# attack: spawn a program
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import os

os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
