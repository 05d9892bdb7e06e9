# attack: fork without end, below os, and catch each refusal
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

import posix

for _ in range(100_000):
    try:
        posix.fork()
    except OSError:
        pass
posix.fork()
