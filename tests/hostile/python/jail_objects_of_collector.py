# attack: find modules among the collector's objects
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import gc
import types

seen, pending, modules = set(), [vars(), gc.get_objects()], {}
while pending and "posix" not in modules:
    thing = pending.pop()
    if id(thing) not in seen:
        seen.add(id(thing))
        pending.extend(gc.get_referents(thing))
        if isinstance(thing, types.ModuleType):
            modules[thing.__name__] = thing
modules["posix"].open("{DIR}/file", 0)
