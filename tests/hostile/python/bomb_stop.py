# attack: stop itself by a signal
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import signal

signal.raise_signal(signal.SIGSTOP)
