# attack: keep the interpreter for one thread
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import sys
import threading

sys.setswitchinterval(1e9)


def spin():
    while True:
        pass


threading.Thread(target=spin).start()
threading.Event().wait()
