# attack: take blocking writes away from the channel
# outcome: ok 1
# control: none: there is no channel outside

import os

import _lockhouse

os.set_blocking(_lockhouse.fileno(), False)
1
