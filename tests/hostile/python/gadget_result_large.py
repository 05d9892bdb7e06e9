# attack: have a tool answer more than a message may hold
# outcome: error the limit is
# outcome: error exceeds the limit of one message
# control: none: there is no MCP server outside

from mcp_tools.fixture import big

big(bytes=10_000_000)
