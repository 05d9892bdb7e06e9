# attack: close the channel
# outcome: killed the worker
# control: none: there is no channel outside

import os

import _lockhouse

os.close(_lockhouse.fileno())
1
