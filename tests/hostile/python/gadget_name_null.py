# attack: call a denied tool by a name that ends early in C
# outcome: error is not valid
# control: none: there is no MCP server outside

import _lockhouse

done, payload = _lockhouse.call("fixture", "echo\0delete_everything", b"{}")
assert done, payload
