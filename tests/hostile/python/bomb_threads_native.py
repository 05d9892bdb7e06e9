# attack: start threads below the library
# outcome: error can't start new thread
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

import _thread
import time

while True:
    _thread.start_new_thread(time.sleep, (60,))
