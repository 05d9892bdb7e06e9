# attack: raise an error whose text never ends
# outcome: timeout did not end within
# control: none: outside it would not end
# limits: timeout_seconds = 1

class Endless(Exception):
    def __str__(self):
        while True:
            pass


raise Endless
