# attack: format a number with a width of gigabytes
# outcome: limit memory limit of 64 MiB reached
# control: none: it would take the machine down
# limits: timeout_seconds = 20, memory_mib = 64

f"{1:>{1 << 33}}"
