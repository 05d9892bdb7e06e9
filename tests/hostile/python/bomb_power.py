# attack: compute a power that never ends, with the interpreter held
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

# One operation: no signal handler of Python runs before it is done.
7 ** (7 ** 9) % 1_000_007
