# attack: read the policy through the library
# outcome: error it has no such name
# control: none: there is no MCP server outside

import _lockhouse

found = [name for name in dir(_lockhouse) if "policy" in name or "allow" in name]
assert found, "it has no such name"
