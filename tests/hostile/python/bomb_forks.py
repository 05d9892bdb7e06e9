# attack: fork without end
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

import os

while True:
    os.fork()
