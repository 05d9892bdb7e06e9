# attack: call a tool that the policy denies
# outcome: error the policy does not allow
# control: none: there is no MCP server outside

from mcp_tools.fixture import delete_everything

delete_everything()
