# attack: let the kernel send signals
# outcome: error not available in the Lockhouse sandbox
# control: outside

import signal

signal.setitimer(signal.ITIMER_REAL, 100)
