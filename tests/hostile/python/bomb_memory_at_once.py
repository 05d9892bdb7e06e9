# attack: take a terabyte at once
# outcome: limit memory limit of 64 MiB reached
# control: none: some hosts would give it
# limits: timeout_seconds = 20, memory_mib = 64

bytearray(1 << 40)
