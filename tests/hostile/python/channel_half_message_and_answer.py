# attack: put half a message before the answer
# outcome: killed broke the protocol
# outcome: timeout did not end within
# control: none: there is no channel outside
# limits: timeout_seconds = 1

import os

import _lockhouse

# The answer then fills the rest of the half message.
os.write(_lockhouse.fileno(), b"\x40\0\0\0")
1
