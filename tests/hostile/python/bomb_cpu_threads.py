# attack: use more processor time than agreed in threads that release the interpreter
# outcome: limit CPU time limit of 1 s reached
# control: none: it would not end
# limits: timeout_seconds = 20, memory_mib = 64, cpu_seconds = 1

import hashlib
import signal
import threading

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
data = bytes(1 << 24)


def burn():
    while True:
        hashlib.sha512(data).digest()


for _ in range(4):
    threading.Thread(target=burn, daemon=True).start()
burn()
