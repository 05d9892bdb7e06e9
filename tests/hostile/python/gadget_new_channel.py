# attack: connect the library to a channel of its own
# outcome: error no attribute 'connect'
# control: none: there is no MCP server outside

import _lockhouse

_lockhouse.connect()
