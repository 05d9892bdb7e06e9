# attack: end itself by a signal
# outcome: killed SIGKILL
# control: none: the control would end by the signal as well
# limits: timeout_seconds = 20, memory_mib = 64

import signal

signal.raise_signal(signal.SIGKILL)
