# attack: take all memory
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

kept = []
while True:
    kept.append(bytearray(1 << 20))
