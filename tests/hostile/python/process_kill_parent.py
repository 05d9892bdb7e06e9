# attack: signal the parent
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os
import signal

os.kill(os.getppid(), signal.SIGCONT)
