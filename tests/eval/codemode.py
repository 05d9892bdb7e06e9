"""Serves FastMCP's CodeMode over MCP (stdio), with its defaults, in front of the servers of a file. Usage: codemode.py FILE

FILE has the entry `mcpServers`. The tools of each server are mounted under the server's name, as FastMCP does it for such a file.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy


async def main():
    servers = json.loads(Path(sys.argv[1]).read_text())["mcpServers"]
    front = FastMCP("eval", transforms=[CodeMode()])
    async with AsyncExitStack() as connections:
        for name, entry in servers.items():
            # A connected client keeps one process for all calls, so that a program's calls see each other's changes.
            client = await connections.enter_async_context(Client(StdioTransport(**entry)))
            front.mount(create_proxy(client), namespace=name)
        await front.run_stdio_async(show_banner=False)


asyncio.run(main())
