# attack: reach Popen through the subclasses of object
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside

import subprocess


def below(kind):
    for sub in type.__subclasses__(kind):
        yield sub
        if sub is not type:
            yield from below(sub)


popen = next(c for c in below(object) if c.__name__ == "Popen" and c.__module__ == "subprocess")
assert popen(["/bin/true"]).wait() == 0
