# attack: forge the final answer, and go on
# outcome: ok null
# control: none: there is no channel outside

# Code may choose its own answer; what counts is that nothing which it does afterwards has an effect.
import os
import struct

import _lockhouse
from mcp_tools.fixture import text

DONE, VALUE, NOTHING = 4, 0, b"\0"
message = struct.pack("<II", DONE, VALUE) + NOTHING
os.write(_lockhouse.fileno(), struct.pack("<I", len(message)) + message)
while True:
    text("after the answer")
