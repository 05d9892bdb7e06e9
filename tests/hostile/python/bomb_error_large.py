# attack: raise an error with a text of megabytes
# outcome: error xxxx
# control: none: outside it ends with an error as well
# limits: timeout_seconds = 20, memory_mib = 64

raise ValueError("x" * 20_000_000)
