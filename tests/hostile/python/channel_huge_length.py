# attack: announce a message of 4 GiB on the channel
# outcome: killed broke the protocol
# control: none: there is no channel outside

import os

import _lockhouse

os.write(_lockhouse.fileno(), b"\xff\xff\xff\xff")
while True:
    pass
