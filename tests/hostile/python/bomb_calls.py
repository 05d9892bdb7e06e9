# attack: make a million calls
# outcome: limit tool call limit of 1000 reached
# control: none: there is no MCP server outside
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

from mcp_tools import ToolError
from mcp_tools.fixture import count

while True:
    try:
        count()
    except ToolError:
        pass
