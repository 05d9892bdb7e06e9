# attack: ask for tools a million times
# outcome: limit limit of 1000 questions about tools reached
# control: none: there is no MCP server outside
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

from mcp_tools import ToolError, search_tools

while True:
    try:
        search_tools("x")
    except ToolError:
        pass
