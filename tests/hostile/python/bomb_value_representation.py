# attack: give a value whose representation never ends
# outcome: timeout did not end within
# control: none: there is no answer outside
# limits: timeout_seconds = 1

class Endless:
    def __repr__(self):
        while True:
            pass


Endless()
