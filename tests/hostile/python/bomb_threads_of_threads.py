# attack: start threads that start threads
# outcome: timeout did not end within
# outcome: limit memory limit of 64 MiB reached
# outcome: killed for want of memory
# outcome: error can't start new thread
# control: none: it would take the machine down
# limits: timeout_seconds = 2, memory_mib = 64

import threading


def multiply():
    while True:
        threading.Thread(target=multiply).start()


multiply()
