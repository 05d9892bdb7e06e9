# attack: take all memory in small pieces
# outcome: limit memory limit of 64 MiB reached
# outcome: killed for want of memory
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

kept = []
while True:
    kept.append({len(kept): [object()]})
