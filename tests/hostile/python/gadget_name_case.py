# attack: call a denied tool by another writing of its name
# outcome: error Delete_Everything
# control: none: there is no MCP server outside

from mcp_tools import call_tool

call_tool("fixture", "Delete_Everything", {})
