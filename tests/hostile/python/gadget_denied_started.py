# attack: start a denied tool without waiting
# outcome: error denied
# control: none: there is no MCP server outside

import time

import _lockhouse

_lockhouse.start_call("fixture", "delete_everything", b"{}")
_lockhouse.flush()
while not (replies := _lockhouse.drain()):
    time.sleep(0.001)
assert replies[0][1], replies
