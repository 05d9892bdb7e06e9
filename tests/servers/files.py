"""An MCP server over stdio with files in memory. As most servers, it declares no output schemas and answers with text.

Usage: files.py DIRECTORY. A file that a program writes is stored in DIRECTORY, byte for byte.
"""

import json
import sys
from pathlib import Path

directory = Path(sys.argv[1])
TEXT, OBJECT = {"type": "string"}, {"type": "object"}
FILE = {"type": "object", "properties": {"path": TEXT, "content": TEXT}, "required": ["path", "content"]}
TOOLS = {
    "read_file": {"path": TEXT},
    "write_file": {"path": TEXT, "content": TEXT},
    "write_files": {"files": {"type": "array", "items": FILE}},
    "save_settings": {"settings": OBJECT},
    "note": {"text": TEXT, "urgent": {"type": "boolean"}},
    "blocks": {"texts": {"type": "array", "items": TEXT}},
}


def definition(name, properties):
    required = [parameter for parameter in properties if parameter != "urgent"]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema}


def write(path, content):
    (directory / path).write_bytes(content.encode())


def call(name, arguments):
    """Returns the texts of a result."""
    if name == "read_file":
        return [(directory / arguments["path"]).read_bytes().decode()]
    if name == "write_file":
        write(**arguments)
    for file in arguments.get("files", ()):
        write(**file)
    return arguments["texts"] if name == "blocks" else [f"{name}: {json.dumps(arguments, sort_keys=True)}"]


def answer(method, params):
    if method == "initialize":
        info = {"name": "files", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [definition(name, properties) for name, properties in TOOLS.items()]}
    texts = call(params["name"], params.get("arguments", {}))
    return {"content": [{"type": "text", "text": text} for text in texts]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ("initialize", "tools/list", "tools/call"):
        reply["result"] = answer(request["method"], request.get("params", {}))
    else:
        reply["error"] = {"code": -32601, "message": "method not found"}
    print(json.dumps(reply), flush=True)
