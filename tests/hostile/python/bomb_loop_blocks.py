# attack: compute without end and block every signal
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import signal

signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
while True:
    pass
