# attack: send the main thread a signal that nobody handles
# outcome: killed killed by SIGUSR1
# control: none: the control would end by the signal as well

import signal
import threading

signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
