"""An MCP server over stdio that imitates an issue tracker: typed arguments, nested results, JSON as text, plain text, and
failing calls. Results depend only on the arguments. With `--broken` the server exits at its start."""

import json
import os
import sys
import threading
import time

ISSUES = [
    {
        "number": number,
        "title": title,
        "state": "open",
        "user": {"login": login, "id": 500 + number},
        "assignee": None,
        "labels": [{"name": "bug"}],
        "comments": number,
    }
    for number, title, login in [(1, "Crash at start", "ada"), (2, "Typing error", "grace"), (3, "Slow search", "ada")]
]
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
REPOSITORY = {"owner": TEXT, "repo": TEXT}


def tool(name, description, properties, required=(), read_only=True):
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    annotations = {"readOnlyHint": read_only}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


TOOLS = [
    tool("list_issues", "Issues of a repository.", {
        **REPOSITORY, "state": {"type": "string", "enum": ["open", "closed"]},
        "filter": {"type": "object", "properties": {"labels": {"type": "array", "items": TEXT}, "since": TEXT}},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    }, ["owner", "repo"]),
    tool("get_issue", "One issue.", {"number": NUMBER}, ["number"]),
    tool("search_code", "Finds code. The answer is JSON as text.", {"query": TEXT}, ["query"]),
    tool("get_readme", "The README as text.", {}),
    tool("create_issue", "Creates an issue.", {"title": TEXT, "body": TEXT, "labels": {"type": "array", "items": TEXT}},
         ["title"], False),
    tool("close_issue", "Closes an issue.", {"number": NUMBER}, ["number"], False),
    tool("merge", "Merges a branch.", {"branch": TEXT}, ["branch"], False),
    tool("delete_repo", "Deletes a repository.", REPOSITORY, ["owner", "repo"], False),
    tool("wait", "Answers after a while.", {"seconds": {"type": "number"}}, ["seconds"]),
    tool("export", "Text of a size.", {"bytes": NUMBER}, ["bytes"]),
    tool("status", "Says that all is well, seldom.", {}),
    tool("die", "Ends this server.", {}),
]


def structured(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def failed(words):
    return {**text(words), "isError": True}


def call(name, arguments):
    match name:
        case "list_issues":
            return structured({"total_count": len(ISSUES), "issues": ISSUES})
        case "get_issue":
            found = [issue for issue in ISSUES if issue["number"] == arguments["number"]]
            return structured(found[0]) if found else failed(f"Not Found: there is no issue {arguments['number']}")
        case "search_code":
            return text(json.dumps({"items": [{"path": "main.py", "line": 3}]}))
        case "get_readme":
            return text("# Tracker\nIt tracks.")
        case "create_issue":
            return structured({"number": 4, "title": arguments["title"]})
        case "close_issue":
            return structured({"number": arguments["number"], "state": "closed"})
        case "wait":
            time.sleep(arguments["seconds"])
            return text("done")
        case "export":
            return text("x" * arguments["bytes"])
        case "status":
            return text("well")
        case "die":
            os._exit(3)
    return failed(f"unknown tool {name}")


def answer(method, parameters):
    match method:
        case "initialize":
            server = {"name": "tracker", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(parameters["name"], parameters.get("arguments") or {})
        case "ping":
            return {}
    return None


def serve(message):
    result = answer(message["method"], message.get("params") or {})
    said = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
    sys.stdout.flush()


def main():
    if "--broken" in sys.argv:
        print("tracker: no credentials", file=sys.stderr)
        sys.exit(1)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()


main()
