# attack: let the kernel send signals
# outcome: error Operation not permitted
# control: outside

import signal

signal.setitimer(signal.ITIMER_REAL, 100)
