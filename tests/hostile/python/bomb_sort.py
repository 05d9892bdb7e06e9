# attack: sort by a comparison that never ends
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

class Thing:
    def __lt__(self, other):
        while True:
            pass


sorted([Thing(), Thing()])
