"""An MCP server over stdio that imitates a shop, and whose tools and answers a test changes. Usage: shop.py DIRECTORY

DIRECTORY/tools.json    the tools, as `tools/list` gives them. When the file changes, the server sends
                        `notifications/tools/list_changed`
DIRECTORY/answers.json  for each tool `{"text": …}`, `{"error": …}` and `{"seconds": …}`; without an entry, the arguments are the answer
"""

import json
import sys
import threading
import time
from pathlib import Path

PLACE = Path(sys.argv[1])
writing = threading.Lock()


def say(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def read(name):
    return json.loads((PLACE / name).read_text())


def watch():
    path = PLACE / "tools.json"
    seen = path.stat().st_mtime_ns
    while True:
        time.sleep(0.1)
        if (now := path.stat().st_mtime_ns) != seen:
            seen = now
            say({"method": "notifications/tools/list_changed"})


def call(name, arguments):
    answer = read("answers.json").get(name, {"text": json.dumps(arguments)})
    time.sleep(answer.get("seconds", 0))
    is_error = "error" in answer
    return {"content": [{"type": "text", "text": answer["error" if is_error else "text"]}], "isError": is_error}


def answer(method, parameters):
    match method:
        case "initialize":
            server = {"name": "shop", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": server}
        case "tools/list":
            return {"tools": read("tools.json")}
        case "tools/call":
            return call(parameters["name"], parameters.get("arguments") or {})
        case "ping":
            return {}
    return None


def serve(message):
    result = answer(message["method"], message.get("params") or {})
    failure = {"error": {"code": -32601, "message": "Method not found"}}
    say({"id": message["id"], **(failure if result is None else {"result": result})})


def main():
    threading.Thread(target=watch, daemon=True).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()


main()
