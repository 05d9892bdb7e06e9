# attack: say once more that it is sealed
# outcome: killed it sent Ready while running
# control: none: there is no channel outside

import os
import struct

import _lockhouse

READY = 0
message = struct.pack("<I", READY)
os.write(_lockhouse.fileno(), struct.pack("<I", len(message)) + message)
while True:
    pass
