# attack: call a denied tool below the library
# outcome: error denied
# control: none: there is no MCP server outside

import _lockhouse

done, payload = _lockhouse.call("fixture", "delete_everything", b"{}")
assert done, payload
