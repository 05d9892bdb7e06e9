# attack: write bytes that are no message to the channel
# outcome: killed broke the protocol
# control: none: there is no channel outside

import os

import _lockhouse

os.write(_lockhouse.fileno(), b"\x08\0\0\0" + b"\xff" * 8)
while True:
    pass
