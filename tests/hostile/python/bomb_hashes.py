# attack: fill a dictionary with keys whose hashes are the same
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

class Key:
    def __hash__(self):
        return 1


len({Key(): None for _ in range(1_000_000)})
