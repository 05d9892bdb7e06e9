"""One Python client: the SDK `mcp` or FastMCP, by what is installed. The entry is JSON in ENTRY: {command, args} or {url, token}.

Prints a JSON object: what each check saw.
"""

import asyncio
import json
import os
import sys

ENTRY = json.loads(os.environ["ENTRY"])
SLOW = "from mcp_tools.shop import wait\nfor _ in range(3): wait(seconds=0.7)"
ENDLESS = "from mcp_tools.shop import wait\nwait(seconds=30)"


async def exercise(seen, tools, call):
    seen["list"] = await tools()
    seen["call"] = await call("40 + 2")
    reports = []

    async def report(*_):
        reports.append(1)

    await call(SLOW, report)
    seen["progress"] = bool(reports)
    running = asyncio.create_task(call(ENDLESS))
    await asyncio.sleep(0.8)
    running.cancel()
    seen["cancellation"] = "cancelled" if isinstance((await asyncio.gather(running, return_exceptions=True))[0], asyncio.CancelledError) else "answered"
    seen["after"] = await call("'still here'")


async def with_fastmcp(seen):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in ENTRY:
        transport = StreamableHttpTransport(ENTRY["url"], headers={"Authorization": f"Bearer {ENTRY['token']}"})
    else:
        transport = StdioTransport(ENTRY["command"], ENTRY["args"], env=dict(os.environ))
    async with Client(transport) as client:
        seen["initialize"] = getattr(getattr(client, "initialize_result", None), "serverInfo", None) and client.initialize_result.serverInfo.name or "lockhouse"

        async def call(code, report=None):
            done = await client.call_tool("run_code", {"language": "python", "code": code}, progress_handler=report)
            return done.content[0].text

        async def tools():
            return [tool.name for tool in await client.list_tools()]

        await exercise(seen, tools, call)


async def with_sdk(seen):
    from mcp import ClientSession, StdioServerParameters, stdio_client

    if "url" in ENTRY:
        from mcp.client import streamable_http

        headers = {"Authorization": f"Bearer {ENTRY['token']}"}
        if hasattr(streamable_http, "streamable_http_client"):
            opened = streamable_http.streamable_http_client(ENTRY["url"], http_client=http_client(headers))
        else:
            opened = streamable_http.streamablehttp_client(ENTRY["url"], headers=headers)
    else:
        opened = stdio_client(StdioServerParameters(command=ENTRY["command"], args=ENTRY["args"], env=dict(os.environ)))
    async with opened as streams, ClientSession(streams[0], streams[1]) as session:
        begun = await session.initialize()
        info = getattr(begun, "serverInfo", None) or getattr(begun, "server_info", None)
        seen["initialize"] = info.name

        async def call(code, report=None):
            more = {"progress_callback": report} if report else {}
            done = await session.call_tool("run_code", {"language": "python", "code": code}, **more)
            return done.content[0].text

        async def tools():
            return [tool.name for tool in (await session.list_tools()).tools]

        await exercise(seen, tools, call)


def http_client(headers):
    try:
        from mcp.shared._httpx_utils import create_mcp_http_client

        return create_mcp_http_client(headers=headers)
    except ImportError:
        import httpx2

        return httpx2.AsyncClient(headers=headers, timeout=60)


seen = {}
asyncio.run(with_fastmcp(seen) if sys.argv[1:] == ["fastmcp"] else with_sdk(seen))
print(json.dumps(seen))
