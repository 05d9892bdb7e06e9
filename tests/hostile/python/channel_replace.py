# attack: put a pipe in the place of the channel
# outcome: killed the worker
# outcome: timeout did not end within
# control: none: there is no channel outside
# limits: timeout_seconds = 1

import os

import _lockhouse

channel = _lockhouse.fileno()
os.close(channel)
assert channel in os.pipe()
1
