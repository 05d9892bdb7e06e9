# attack: compute a number that fills the memory
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

number = 1
while True:
    number <<= number.bit_length()
