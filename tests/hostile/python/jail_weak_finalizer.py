# attack: run code when an object of the engine dies
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix
import weakref


class Thing:
    pass


thing = Thing()
ends = weakref.finalize(thing, posix.open, "{DIR}/file", 0)
ends()
