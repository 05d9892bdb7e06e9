# attack: use more processor time than agreed and ignore the signal that says so
# outcome: limit CPU time limit of 1 s reached
# control: none: it would not end
# limits: timeout_seconds = 20, memory_mib = 64, cpu_seconds = 1

import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
