# attack: read an attribute by formatting text
# outcome: error the secret is not there
# control: none: what it finds outside says nothing

import lockhouse_runner

text = "{0.run.__globals__[sys].modules[posix].environ}".format(lockhouse_runner)
assert b"LOCKHOUSE_CANARY" in eval(text), "the secret is not there"
