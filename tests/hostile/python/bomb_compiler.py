# attack: overflow the stack of the compiler
# outcome: limit memory limit of 64 MiB reached
# outcome: error too
# control: none: the control may crash as well
# limits: timeout_seconds = 20, memory_mib = 64

eval("-" * 1_000_000 + "1")
