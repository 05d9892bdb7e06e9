# attack: make a million calls that are denied
# outcome: limit tool call limit of 1000 reached
# control: none: there is no MCP server outside
# limits: timeout_seconds = 20, memory_mib = 64

from mcp_tools import ToolError, call_tool

while True:
    try:
        call_tool("fixture", "delete_everything", {})
    except ToolError:
        pass
