# attack: call itself without end and without the interpreter's limit
# outcome: limit memory limit of 64 MiB reached
# outcome: killed the worker
# outcome: error maximum recursion depth
# outcome: error the error cannot be described
# outcome: error error return without exception set
# control: none: the control would crash as well
# limits: timeout_seconds = 20, memory_mib = 64

import sys

sys.setrecursionlimit(1 << 30)


def again(n):
    return again(n + 1) + 1


again(0)
