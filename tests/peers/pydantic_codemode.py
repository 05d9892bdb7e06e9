"""Serves Pydantic AI's CodeMode over MCP (stdio): the tool `run_code` takes one program. Usage: pydantic_codemode.py FILE

FILE has the entry `mcpServers`. The calls go through Pydantic AI's tool manager, as the calls of a model do, but there is no model.
"""

import asyncio
import json
import sys
from pathlib import Path

from fastmcp.client.transports import StdioTransport
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import CombinedToolset
from pydantic_ai_harness import CodeMode


async def result_of(message, manager):
    """Returns the result of a request, or None for an unknown method."""
    method, parameters = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "codemode", "version": "1"}}
    if method == "tools/call":
        # A session permits 1000 calls in total, so each program gets a new one; the worker process stays.
        call = ToolCallPart("run_code", {"code": parameters["arguments"]["code"], "restart": True})
        try:
            answer, failed = (await manager.handle_call(call)).return_value, False
        except Exception as error:
            answer, failed = str(error), True
        return {"content": [{"type": "text", "text": json.dumps(answer)}], "isError": failed}
    return None


async def main():
    servers = json.loads(Path(sys.argv[1]).read_text())["mcpServers"]
    tools = CombinedToolset([MCPToolset(StdioTransport(**entry)).prefixed(name) for name, entry in servers.items()])
    async with CodeMode().get_wrapper_toolset(tools) as toolset:
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        manager = await ToolManager(toolset).for_run_step(context)
        while line := await asyncio.to_thread(sys.stdin.readline):
            message = json.loads(line)
            if "id" in message:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": await result_of(message, manager)}
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()


asyncio.run(main())
