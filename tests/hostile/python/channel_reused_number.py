# attack: use the number of a request again
# outcome: killed it used call id
# control: none: there is no channel outside

import os
import struct

import _lockhouse

REQUEST, LIST_SERVERS = 3, 1
body = struct.pack("<III", REQUEST, 1_000, LIST_SERVERS)
os.write(_lockhouse.fileno(), 2 * (struct.pack("<I", len(body)) + body))
while True:
    pass
