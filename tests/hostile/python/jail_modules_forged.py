# attack: put something else in the place of the engine's modules
# outcome: ok 1
# control: none: there is no engine outside

import sys


class Forged:
    def __getattr__(self, name):
        return lambda *arguments, **named: "forged"


for name in list(sys.modules):
    sys.modules[name] = Forged()
1
