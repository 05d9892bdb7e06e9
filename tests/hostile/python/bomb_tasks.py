# attack: make tasks without end
# outcome: killed for want of memory
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

import asyncio

kept = []
while True:
    kept.append(asyncio.ensure_future(asyncio.sleep(60)))
