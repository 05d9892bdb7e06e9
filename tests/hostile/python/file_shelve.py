# attack: keep an object on disk
# outcome: error Errno
# control: outside
# preload: dbm.dumb shelve

import dbm
import dbm.dumb
import shelve

dbm._defaultmod = dbm.dumb
with shelve.open("{DIR}/new", "n") as shelf:
    shelf["a"] = [1]
