# attack: ask for a server that the name cannot be
# outcome: killed broke the protocol
# control: none: there is no channel outside

import os
import struct

import _lockhouse

REQUEST, LIST_TOOLS = 3, 2
name = b"../../etc\0"
body = struct.pack("<IIIQ", REQUEST, 1_000, LIST_TOOLS, len(name)) + name
os.write(_lockhouse.fileno(), struct.pack("<I", len(body)) + body)
while True:
    pass
