# attack: have the handler of signals write to the channel
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: there is no channel outside

import signal

import _lockhouse

signal.set_wakeup_fd(_lockhouse.fileno(), warn_on_full_buffer=False)
signal.raise_signal(signal.SIGINT)
