"""An MCP server over stdio with the tools of a file. Usage: catalogue.py FILE

FILE is JSON with a result of `tools/list`: {"tools": [...]}. A call returns the tool's name and its arguments.
"""

import json
import sys

TOOLS = json.load(open(sys.argv[1], encoding="utf-8"))["tools"]


def answer(method, parameters):
    if method == "initialize":
        return {
            "protocolVersion": parameters.get("protocolVersion", "2025-11-25"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "catalogue", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        called = {"called": parameters["name"], "arguments": parameters.get("arguments", {})}
        return {"content": [{"type": "text", "text": json.dumps(called)}], "structuredContent": called}
    return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    reply = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}), flush=True)
