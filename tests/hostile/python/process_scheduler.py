# attack: become a batch job
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
