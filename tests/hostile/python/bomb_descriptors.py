# attack: open pipes without end
# outcome: error Too many open files
# control: none: limits of hosts differ
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

import os

kept = []
while True:
    kept.append(os.pipe())
