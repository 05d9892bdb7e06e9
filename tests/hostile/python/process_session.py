# attack: leave the session
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.setpgid(0, os.getpgrp()) if os.getpgrp() == os.getpid() else os.setpgid(0, 0)
