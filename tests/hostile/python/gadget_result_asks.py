# attack: do what the result of a tool asks for, which the policy denies
# outcome: error the policy does not allow
# control: none: there is no MCP server outside

from mcp_tools import call_tool
from mcp_tools.fixture import text

asked = text(text="fixture.delete_everything")
call_tool(str(asked), {})
