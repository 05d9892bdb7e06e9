# attack: keep a key and a value on disk
# outcome: error Errno
# control: outside
# preload: dbm.dumb

import dbm.dumb

with dbm.dumb.open("{DIR}/new", "c") as database:
    database["a"] = "b"
