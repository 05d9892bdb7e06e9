"""A bare MCP server over stdio, without a library: its tool `add` adds two integers."""

import json
import sys

INTEGER = {"type": "integer"}
TOOL = {
    "name": "add", "description": "Adds two integers.",
    "inputSchema": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
    "outputSchema": {"type": "object", "properties": {"sum": INTEGER}, "required": ["sum"]},
}


def result_of(method, parameters):
    """Returns the result of a request, or None for an unknown method."""
    if method == "initialize":
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        total = {"sum": parameters["arguments"]["a"] + parameters["arguments"]["b"]}
        return {"content": [{"type": "text", "text": json.dumps(total)}], "structuredContent": total}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = result_of(message["method"], message.get("params", {}))
        outcome = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()
