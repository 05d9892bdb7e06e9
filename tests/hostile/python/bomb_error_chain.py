# attack: raise an error with a chain of a million causes
# outcome: error the last
# control: none: outside it ends with an error as well
# limits: timeout_seconds = 20, memory_mib = 64

error = ValueError("first")
for _ in range(100_000):
    following = ValueError("the last")
    following.__cause__ = error
    error = following
raise error
