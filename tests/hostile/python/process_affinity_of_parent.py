# attack: move the parent to a processor
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid()))
