"""An upstream server with the tools of a file. Each tool returns its name and its arguments.
Usage: catalogue_server.py FILE"""

import json
import sys
from pathlib import Path

# Definitions per page, so that a page is below the limit of a line.
PAGE_BYTES = 400_000


def pages(tools: list) -> list[list]:
    """Splits the tools into pages of a size that every client accepts."""
    found, size = [[]], 0
    for tool in tools:
        size += len(json.dumps(tool))
        if size > PAGE_BYTES and found[-1]:
            found.append([])
            size = 0
        found[-1].append(tool)
    return found


def main(path: str):
    listed = pages(json.loads(Path(path).read_text())["tools"])
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request.get("method"), request.get("params") or {}
        if "id" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if method == "initialize":
            server = {"name": "catalogue", "version": "1"}
            version = params.get("protocolVersion", "2025-06-18")
            answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        elif method == "tools/list":
            page = int(params.get("cursor") or 0)
            answer["result"] = {"tools": listed[page]}
            if page + 1 < len(listed):
                answer["result"]["nextCursor"] = str(page + 1)
        elif method == "tools/call":
            given = {"tool": params["name"], "given": params.get("arguments") or {}}
            answer["result"] = {"content": [{"type": "text", "text": ""}], "structuredContent": given}
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": f"no method {method}"}
        print(json.dumps(answer), flush=True)


main(sys.argv[1])
