# attack: call a denied tool through the library's asynchronous half
# outcome: error the policy does not allow
# control: none: there is no MCP server outside

from mcp_tools.aio import call_tool

await call_tool("fixture", "delete_everything")
