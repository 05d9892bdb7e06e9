# attack: send arguments that weigh more as a tree than as text
# outcome: error more than 50000 values
# control: none: there is no MCP server outside

import _lockhouse

done, payload = _lockhouse.call("fixture", "echo", b'{"value": [' + b"1," * 1_000_000 + b"1]}")
assert done, payload
