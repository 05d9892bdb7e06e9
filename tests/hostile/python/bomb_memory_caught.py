# attack: take all memory and catch that there is no more
# outcome: timeout did not end within
# control: none: it would take the machine down
# limits: timeout_seconds = 2, memory_mib = 64
# endurance: ends by its deadline

kept = []
while True:
    try:
        kept.append(bytearray(1 << 20))
    except MemoryError:
        pass
