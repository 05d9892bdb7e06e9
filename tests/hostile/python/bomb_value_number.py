# attack: give a number of ten million digits
# outcome: error digits
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

1 << 33_000_000
