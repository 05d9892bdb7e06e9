# attack: call a denied tool by a name with more in it
# outcome: error is not valid
# control: none: there is no MCP server outside

from mcp_tools import call_tool

call_tool("fixture", "delete_everything ", {})
