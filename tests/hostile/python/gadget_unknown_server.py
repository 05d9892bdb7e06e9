# attack: make the library know a server that is not there
# outcome: error there is no MCP server 'planted'
# control: none: there is no MCP server outside

import lockhouse_calls
from mcp_tools import call_tool

lockhouse_calls._servers.append("planted")
call_tool("planted", "run", {})
