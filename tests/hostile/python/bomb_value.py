# attack: give a value larger than a message may be
# outcome: error the result exceeds the limit
# outcome: killed for want of memory
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

"x" * 20_000_000
