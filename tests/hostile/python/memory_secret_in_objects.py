# attack: find the secret among all objects
# outcome: error the secret is nowhere
# control: outside

import gc
import os
import re
import sys

SECRET = re.compile("[l]ockhouse-canary-[0-9a-f]{32}")
seen, pending = set(), [*gc.get_objects(), *map(vars, filter(None, sys.modules.values())), dict(os.environ)]
found = False
while pending and not found:
    thing = pending.pop()
    if id(thing) in seen:
        continue
    seen.add(id(thing))
    if isinstance(thing, (str, bytes)):
        text = thing if isinstance(thing, str) else thing.decode("latin-1")
        found = SECRET.search(text) is not None
    else:
        pending.extend(gc.get_referents(thing))
assert found, "the secret is nowhere"
