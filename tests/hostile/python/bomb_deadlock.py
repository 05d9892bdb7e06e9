# attack: wait for a lock that nobody gives back
# outcome: timeout did not end within 1 s
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

import threading

lock = threading.Lock()
lock.acquire()
lock.acquire()
