# attack: wait for a signal of another
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import signal

signal.sigtimedwait([signal.SIGUSR1], 0)
