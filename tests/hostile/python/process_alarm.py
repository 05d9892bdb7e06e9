# attack: let the kernel send one signal
# outcome: error no alarm rang
# outcome: error not available in the Lockhouse sandbox
# control: outside

import signal
import time

rung = []
signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
signal.alarm(1)
time.sleep(1.2)
assert rung, "no alarm rang"
