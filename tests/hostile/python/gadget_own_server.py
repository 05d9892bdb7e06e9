# attack: have Lockhouse call itself
# outcome: error there is no MCP server 'lockhouse'
# control: none: there is no MCP server outside

from mcp_tools import call_tool

call_tool("lockhouse", "run_code", {"language": "python", "code": "1"})
