# attack: send arguments that are nested without end
# outcome: error more than 100 levels
# control: none: there is no MCP server outside

import _lockhouse

done, payload = _lockhouse.call("fixture", "echo", b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
assert done, payload
