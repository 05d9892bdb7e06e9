# attack: raise a group of errors within groups
# outcome: error x (1 sub-exception)
# outcome: error is not defined
# control: none: older versions have no groups
# limits: timeout_seconds = 20, memory_mib = 64

group = ValueError("x")
for _ in range(50_000):
    group = BaseExceptionGroup("x", [group])
raise group
