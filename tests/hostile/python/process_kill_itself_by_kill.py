# attack: signal itself with the call that could signal others
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os
import signal

os.kill(os.getpid(), signal.SIGCONT)
