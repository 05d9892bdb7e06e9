"""An upstream MCP server for these tests, over standard input and output: lists of rows, a tool that changes something, a slow one, and one that fails.

Calls run at the same time, each in a thread of its own.
"""

import json
import sys
import threading
import time

NUMBER = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
NOTHING = {"type": "object", "properties": {}}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}}
MEETING = {"type": "object", "properties": {"count": {"type": "integer"}, "seconds": {"type": "number"}}, "required": ["count", "seconds"]}
READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    {"name": "rows", "description": "Lists orders.", "inputSchema": NUMBER, **READS},
    {"name": "buy", "description": "Buys an item.", "inputSchema": ITEM},
    {"name": "refund", "description": "Refunds an item.", "inputSchema": ITEM},
    {"name": "wait", "description": "Waits.", "inputSchema": SECONDS},
    {"name": "meet", "description": "Waits until so many of its calls run at the same time, or for some seconds.", "inputSchema": MEETING, **READS},
    {"name": "note", "description": "Reads a note. There is none.", "inputSchema": NOTHING, **READS},
    {"name": "close", "description": "Closes the shop.", "inputSchema": NOTHING},
    {"name": "fail", "description": "Fails.", "inputSchema": NOTHING},
]


class Meeting:
    """The calls of `meet` that run at the same time."""

    def __init__(self):
        self.present, self.most, self.changed = 0, 0, threading.Condition()

    def attend(self, count, seconds):
        """Returns the largest number of calls that ran at the same time so far."""
        with self.changed:
            self.present += 1
            self.most = max(self.most, self.present)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= count, timeout=seconds)
            self.present -= 1
            return self.most


PRESENT = Meeting()
OUTPUT = threading.Lock()


def call(name, arguments):
    if name == "rows":
        return [{"id": number, "amount": number * 1.5} for number in range(1, int(arguments["count"]) + 1)], False
    if name == "wait":
        time.sleep(arguments.get("seconds", 1))
        return "waited", False
    if name == "meet":
        return PRESENT.attend(int(arguments["count"]), arguments["seconds"]), False
    if name in ("buy", "refund"):
        return {"item": arguments["item"], "done": name}, False
    if name == "note":
        return None, False
    return "the shop is closed", True


def answer(message):
    method, parameters = message.get("method"), message.get("params") or {}
    result = None
    if method == "initialize":
        result = {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        value, is_error = call(parameters["name"], parameters.get("arguments") or {})
        result = {"content": [{"type": "text", "text": json.dumps(value)}], "isError": is_error}
    body = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
    with OUTPUT:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        threading.Thread(target=answer, args=[message], daemon=True).start()
