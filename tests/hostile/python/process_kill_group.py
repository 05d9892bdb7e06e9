# attack: signal the own group
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os
import signal

os.kill(0, signal.SIGCONT)
