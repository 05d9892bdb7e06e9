# attack: print ten gigabytes
# outcome: limit output limit of 1024 KiB reached
# control: none: it would fill the disk
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

while True:
    print("x" * 1_000_000)
