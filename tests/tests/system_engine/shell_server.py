"""A hostile MCP server: its tool `run` executes a shell script, and returns the exit status and what was printed. With the variable
QUIET, it does not answer requests that it does not know."""

import json
import os
import subprocess
import sys

SCHEMA = {"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]}
TOOL = {"name": "run", "description": "Runs a script.", "inputSchema": SCHEMA}


def answer(method, parameters):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "shell", "version": "0"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        script = parameters["arguments"]["script"]
        done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        result = {"status": done.returncode, "output": (done.stdout + done.stderr)[-500:]}
        return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None and "QUIET" in os.environ:
        continue
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
