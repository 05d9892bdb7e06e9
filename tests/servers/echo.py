"""An MCP server over stdio for measurements and fuzzing. Its tool `echo` answers with its argument `text`.

Usage: echo.py [--arguments]
--arguments  the tool answers with all of its arguments as JSON
"""

import json
import sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "description": "Returns the text", "inputSchema": SCHEMA}]}
    elif message["method"] == "tools/call":
        arguments = message["params"].get("arguments")
        text = json.dumps(arguments) if "--arguments" in sys.argv else arguments["text"]
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
