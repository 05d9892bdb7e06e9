"""An MCP server over stdio whose results are given byte for byte, and that shows arguments as they were sent.

Usage: borders.py DIRECTORY
DIRECTORY/NAME  the JSON of the result that the tool `give` answers for NAME
"""

import json
import sys
from pathlib import Path

INSTRUCTIONS = "Call list_pages first." + " Then read." * 1000 + "\u200b"
PAGE = {"cursor": {"type": "string", "nullable": True}, "limit": {"type": "integer", "maximum": 2**64 - 1}}
ANY, INTEGER, NUMBER, TEXT = {}, {"type": "integer"}, {"type": "number"}, {"type": "string"}
MAYBE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
KINDS = {"any": ANY, "integer": INTEGER, "number": NUMBER, "text": TEXT, "maybe": MAYBE}


def tools():
    give = {"name": "give", "description": "Gives a result.", "inputSchema": {"type": "object", "properties": {"name": TEXT}}}
    takes = [
        {
            "name": f"take_{kind}",
            "description": "Shows its argument as it was sent.",
            "inputSchema": {"type": "object", "properties": {"value": schema}, "required": ["value"]},
            "annotations": {"readOnlyHint": True},
        }
        for kind, schema in KINDS.items()
    ]
    pages = {
        "name": "list_pages",
        "description": "Lists the pages. Sorted by name. Repeat with next_cursor until it is null. Cached.",
        "inputSchema": {"type": "object", "properties": PAGE, "required": ["cursor"]},
        "annotations": {"readOnlyHint": True},
    }
    return [{**give, "annotations": {"readOnlyHint": True}}, *takes, pages]


class Literal(str):
    """A number as it was written."""


def shown(value):
    """A value with each number as it was written: an integer as `int 1`, any other number as `float 1.0`."""
    if isinstance(value, Literal):
        return ("float " if set(value) & set(".eE") else "int ") + value
    if isinstance(value, list):
        return [shown(item) for item in value]
    return {name: shown(item) for name, item in value.items()} if isinstance(value, dict) else value


def result_of(directory, name, arguments):
    if name == "give":
        return (directory / arguments["name"]).read_text()
    text = json.dumps(shown(arguments.get("value", arguments)), ensure_ascii=False)
    return json.dumps({"content": [{"type": "text", "text": "sent: " + text}]})


def main():
    directory = Path(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line, parse_int=Literal, parse_float=Literal)
        number, method = request.get("id"), request.get("method")
        if number is None:
            continue
        if method == "initialize":
            server = {"name": "borders", "version": "1"}
            about = {"serverInfo": server, "instructions": INSTRUCTIONS}
            result = json.dumps({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}}, **about})
        elif method == "tools/list":
            result = json.dumps({"tools": tools()})
        elif method == "tools/call":
            result = result_of(directory, request["params"]["name"], request["params"].get("arguments", {}))
        elif method == "resources/read":
            result = (directory / request["params"]["uri"].split(":", 1)[1]).read_text()
        elif method in ("resources/list", "resources/templates/list"):
            result = json.dumps({"resources": []} if method == "resources/list" else {"resourceTemplates": []})
        elif method == "ping":
            result = "{}"
        else:
            error = {"code": -32601, "message": "no such method"}
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"error":{json.dumps(error)}}}\n')
            sys.stdout.flush()
            continue
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{" ".join(result.splitlines())}}}\n')
        sys.stdout.flush()


main()
