# attack: change the priority of the parent
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid()))
