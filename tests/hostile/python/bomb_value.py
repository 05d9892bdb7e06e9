# attack: give a value larger than a message may be
# outcome: error the result exceeds the limit
# outcome: limit memory limit of 64 MiB reached
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

"x" * 20_000_000
