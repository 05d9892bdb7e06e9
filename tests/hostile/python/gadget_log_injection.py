# attack: forge a line of the log by a name
# outcome: error is not valid
# control: none: there is no MCP server outside

from mcp_tools import call_tool

call_tool("fixture", "echo\n2030-01-01T00:00:00Z INFO forged", {})
