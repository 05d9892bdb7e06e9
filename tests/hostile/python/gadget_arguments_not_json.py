# attack: send arguments that are no JSON
# outcome: error the arguments are not JSON
# control: none: there is no MCP server outside

import _lockhouse

done, payload = _lockhouse.call("fixture", "echo", b'{"value": ')
assert done, payload
