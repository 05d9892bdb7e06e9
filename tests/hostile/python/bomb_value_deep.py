# attack: give a value that is nested without end
# outcome: error nested
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

value = 1
for _ in range(100_000):
    value = [value]
value
