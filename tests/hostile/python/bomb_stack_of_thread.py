# attack: overflow the stack of another thread
# outcome: killed (SIGSEGV)
# control: none: the control would crash as well
# limits: timeout_seconds = 20, memory_mib = 64

import sys
import threading

sys.setrecursionlimit(1 << 30)


def overflow():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    hash(deep)


thread = threading.Thread(target=overflow)
thread.start()
thread.join()
raise OSError("the thread has ended")
