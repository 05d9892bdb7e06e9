# attack: start threads without end that the interpreter waits for
# outcome: error can't start new thread
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

import threading
import time

while True:
    threading.Thread(target=time.sleep, args=(60,)).start()
