"""An upstream MCP server for these tests, over standard input and output: lists of rows, a slow tool, one that fails."""

import json
import sys
import time

NUMBER = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
TOOLS = [
    {"name": "rows", "description": "Lists orders.", "inputSchema": NUMBER, "annotations": {"readOnlyHint": True}},
    {"name": "buy", "description": "Buys an item.", "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}},
    {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object", "properties": {}}},
]


def call(name, arguments):
    if name == "rows":
        return [{"id": number, "amount": number * 1.5} for number in range(1, int(arguments["count"]) + 1)], False
    if name == "wait":
        time.sleep(arguments.get("seconds", 1))
        return "waited", False
    if name == "buy":
        return {"bought": arguments["item"]}, False
    return "the shop is closed", True


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, parameters = message.get("method"), message.get("params") or {}
    result = None
    if method == "initialize":
        result = {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        value, is_error = call(parameters["name"], parameters.get("arguments") or {})
        result = {"content": [{"type": "text", "text": json.dumps(value)}], "isError": is_error}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    else:
        answer["result"] = result
    print(json.dumps(answer), flush=True)
