"""One environment of the leaderboard as an MCP server over standard input and output. Usage: server.py SERVER DIRECTORY

DIRECTORY/task.json    the task that is being run; when another one is there, the environment starts afresh
DIRECTORY/SERVER.json  written after every call: for which run of a task, and the environment's state
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
        except Exception as error:  # Whatever it is: the leaderboard makes it a part of the conversation, too.
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
