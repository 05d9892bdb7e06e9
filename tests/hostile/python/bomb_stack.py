# attack: overflow the stack of C
# outcome: killed the stack overflowed
# outcome: killed (SIGSEGV)
# control: none: the control would crash as well
# limits: timeout_seconds = 20, memory_mib = 64

import sys

sys.setrecursionlimit(1 << 30)
deep = ()
for _ in range(1_000_000):
    deep = (deep,)
hash(deep)
