"""Serves one environment of the leaderboard over MCP (stdio). Usage: server.py SERVER DIRECTORY

DIRECTORY/task.json    the current task; when it changes, the environment is created again
DIRECTORY/SERVER.json  written after every call: the number of the run, and the state of the environment
"""

import json
import os
import sys
from pathlib import Path

import environments

SERVER, PLACE = sys.argv[1], Path(sys.argv[2])


class Environment:
    def __init__(self):
        self.run = self.instance = None

    def call(self, name: str, arguments: dict) -> dict:
        task = json.loads((PLACE / "task.json").read_text())
        if task["run"] != self.run:
            self.run = task["run"]
            self.instance = environments.environment(environments.CLASSES[SERVER], task)
        try:
            result = environments.answer(getattr(self.instance, name)(**arguments))
        except Exception as error:  # The leaderboard returns errors of every type to the model.
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        finally:
            written = PLACE / f"{SERVER}.json.new"
            written.write_text(json.dumps({"run": self.run, "state": environments.state(self.instance)}))
            os.replace(written, PLACE / f"{SERVER}.json")
        return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}


def answer(environment: Environment, method: str, parameters: dict) -> dict | None:
    match method:
        case "initialize":
            offers = {"capabilities": {"tools": {}}, "serverInfo": {"name": SERVER, "version": "1"}}
            return {"protocolVersion": "2025-11-25", **offers}
        case "tools/list":
            return {"tools": environments.tools(SERVER)}
        case "tools/call":
            return environment.call(parameters["name"], parameters.get("arguments") or {})
        case "ping":
            return {}
    return None


def main():
    environment = Environment()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(environment, message["method"], message.get("params") or {})
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


main()
