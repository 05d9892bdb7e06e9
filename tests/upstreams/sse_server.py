"""An upstream server over HTTP+SSE, as people write them in Python: FastMCP of mcp 1.6, or its successor in mcp 2, depending
on the environment. Usage: sse_server.py PORT"""

import sys

port = int(sys.argv[1])
try:
    from mcp.server.fastmcp import Context, FastMCP

    server, options = FastMCP("sums", host="127.0.0.1", port=port), {}
except ImportError:
    from mcp.server.mcpserver import Context, MCPServer

    server, options = MCPServer("sums"), {"host": "127.0.0.1", "port": port}


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def text(size: int) -> str:
    return "Grüße, 水門 " * size


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    for step in range(count):
        await ctx.report_progress(step, count)
    return f"{count} steps"


@server.tool()
def fail() -> str:
    raise ValueError("the gate is shut")


server.run("sse", **options)
