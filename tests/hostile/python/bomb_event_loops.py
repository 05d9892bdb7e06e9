# attack: make event loops without end
# outcome: error Too many open files
# control: none: limits of hosts differ
# limits: timeout_seconds = 20, memory_mib = 64

import asyncio

kept = []
while True:
    kept.append(asyncio.new_event_loop())
