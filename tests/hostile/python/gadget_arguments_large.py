# attack: send arguments larger than a message may be
# outcome: error the arguments are too large
# control: none: there is no MCP server outside

from mcp_tools.fixture import text

text(text="x" * 20_000_000)
