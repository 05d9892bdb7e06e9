# attack: announce a message and never finish it
# outcome: killed broke the protocol
# outcome: timeout did not end within
# control: none: there is no channel outside
# limits: timeout_seconds = 1

import os

import _lockhouse

os.write(_lockhouse.fileno(), b"\x40\0\0\0\x02")
while True:
    pass
