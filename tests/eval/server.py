"""Serves one environment over MCP (stdio). Usage: server.py SERVER VARIANT DIRECTORY

VARIANT                structured: output schemas and structured content; text: neither, and each result as one text block,
                       which is JSON unless the result is a string, as most servers answer
DIRECTORY/run          the number of the current run; when it changes, the environment is created again
DIRECTORY/SERVER.json  written after every call: the number of the run, and the state of the environment
"""

import json
import os
import sys
from pathlib import Path

import task_environments

SERVER, VARIANT, PLACE = sys.argv[1], sys.argv[2], Path(sys.argv[3])


class Server:
    def __init__(self):
        self.run = None
        self.environment = task_environments.environment(SERVER)
        self.listed = self.environment.tools()
        self.wrapped = {tool["name"] for tool in self.listed if "x-fastmcp-wrap-result" in tool["outputSchema"]}
        if VARIANT == "text":
            self.listed = [{key: tool[key] for key in tool if key != "outputSchema"} for tool in self.listed]

    def call(self, name: str, arguments: dict) -> dict:
        run = (PLACE / "run").read_text()
        if run != self.run:
            self.run = run
            self.environment = task_environments.environment(SERVER)
        try:
            value = task_environments.plain(self.environment.call(name, arguments))
        except Exception as error:  # The packages raise errors of every type for the model.
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        finally:
            written = PLACE / f"{SERVER}.json.new"
            written.write_text(json.dumps({"run": run, "state": self.environment.state()}))
            os.replace(written, PLACE / f"{SERVER}.json")
        text = value if isinstance(value, str) else json.dumps(value)
        content = {"content": [{"type": "text", "text": text}]}
        if VARIANT == "text":
            return content
        return {**content, "structuredContent": {"result": value} if name in self.wrapped else value}

    def answer(self, method: str, parameters: dict) -> dict | None:
        match method:
            case "initialize":
                offers = {"capabilities": {"tools": {}}, "serverInfo": {"name": SERVER, "version": "1"}}
                return {"protocolVersion": "2025-11-25", **offers}
            case "tools/list":
                return {"tools": self.listed}
            case "tools/call":
                return self.call(parameters["name"], parameters.get("arguments") or {})
            case "ping":
                return {}
        return None


def main():
    server = Server()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = server.answer(message["method"], message.get("params") or {})
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


main()
