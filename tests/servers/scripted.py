"""An MCP server over stdio that is controlled by files: `tools/list` returns the current tools of a file, and some tools
misbehave when they are called. Usage: scripted.py DIRECTORY [FLAG]...

DIRECTORY/tools.json  the tools, as `tools/list` gives them; `echo` alone if there is none
DIRECTORY/starts      a line is added for each start, with the process's id
DIRECTORY/listings    a line is added for each `tools/list`
DIRECTORY/calls       a line is added for each call, with its tool and time
DIRECTORY/errors      a line is added for each error response to a request of the server
DIRECTORY/open        with --waits the server answers nothing until this file exists, and the tool `wait` does not return

With --single it handles one message at a time, so that it answers nothing during a call. With --no-pong it answers no
ping, and adds a line to DIRECTORY/pings for each. With --protocol=VERSION it answers this protocol version.

With --cursor=KIND it lists 120 tools, prompts, resources and templates in pages of 40, with a fault in its cursors:
`empty` (the last page has an empty one), `same` (the last page has its own), `circle` (the last page has that of the
second page), `stuck` (each page is the first).
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

PLACE = Path(sys.argv[1])
FLAGS = set(sys.argv[2:])
ERA = next((flag.partition("=")[2] for flag in FLAGS if flag.startswith("--protocol=")), "2025-11-25")
NEWEST = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
writing = threading.Lock()


# Fields of every result of the newest era.
READ = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def write(text):
    with writing:
        sys.stdout.write(text)
        sys.stdout.flush()


def say(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def tools():
    path = PLACE / "tools.json"
    if path.exists():
        return json.loads(path.read_text())
    return [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]


def note(name, line):
    with open(PLACE / name, "a") as file:
        file.write(line + "\n")


# Id of the `subscriptions/listen` request, without which the newest era has no change notifications.
subscribed = None


def changed(count):
    if "--newest" in FLAGS and subscribed is None:
        return
    parameters = {"params": {"_meta": {SUBSCRIPTION: subscribed}}} if "--newest" in FLAGS else {}
    for _ in range(count):
        say({"method": "notifications/tools/list_changed", **parameters})


def call(identity, name, arguments, token):
    match name:
        case "echo" | "echo text" | "эхо":
            return text(arguments.get("text", ""))
        case "sleep":
            time.sleep(arguments["seconds"])
            return text("awake")
        case "wait":
            while not (PLACE / "open").exists():
                time.sleep(0.02)
            return text("released")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(3600)  # Waits for the signal to arrive.
        case "garbage":
            write("\x00\xff\x1b]0;title\x07 {not json\n" * arguments.get("lines", 1))
            return text("after the garbage")
        case "half":
            write('{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "te')
            os._exit(3)
        case "large":
            write_large(identity, arguments["bytes"])
            return None
        case "late_id":
            write_large(identity, arguments["bytes"], '"id":12345,')
            return None
        case "storm":
            changed(arguments["count"])
            return text("the storm is over")
        case "complain":
            for number in range(arguments["lines"]):
                print(f"complaint {number}", file=sys.stderr)
            return text("said")
        case "flood":
            if arguments.get("after"):
                threading.Timer(0.2, flood, [arguments, token]).start()
                return text("soon")
            flood(arguments, token)
            return text("flooded")
        case "never":
            return None
    return {**text(f"unknown tool {name}"), "isError": True}


def log(data):
    return {"method": "notifications/message", "params": {"level": "info", "data": data}}


def flood(arguments, token):
    size, count = arguments.get("bytes", 0), arguments.get("count", 1)
    match arguments["what"]:
        case "ids":
            many({"id": "x" * size, "method": "ping"}, count)
        case "answers":
            many({"id": 987654321, "result": {"x": "x" * size}}, count)
        case "nodes":
            many(log([[]] * (size // 3)), count)
        case "logs":
            many(log("x" * size), count)
        case "requests":
            for number in range(count):
                say({"id": f"mine-{number}", "method": "ping"})
        case "progress":
            many({"method": "notifications/progress", "params": {"progressToken": "x" * size, "progress": 1}}, count)
        case "own progress":
            many({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}, count)
        case "many values":
            say({"id": "many-values", "method": "ping", "params": {"_meta": {"x": [0] * count}}})
        case "updates":
            many({"method": "notifications/resources/updated", "params": {"uri": "file:///" + "x" * size}}, count)
        case "garbage":
            many_lines("x" * size, count)
        case "line":
            with writing:
                for _ in range(size // 65536):
                    sys.stdout.write("x" * 65536)
                sys.stdout.flush()
        case "stderr":
            for _ in range(count):
                sys.stderr.write("x" * size + "\n")


def many(message, count):
    many_lines(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), count)


def many_lines(line, count):
    for _ in range(count):
        write(line + "\n")


def write_large(identity, size, data=""):
    """Writes a large result in parts, without holding all of it in memory."""
    with writing:
        sys.stdout.write('{"jsonrpc": "2.0", "result": {' + data + '"content": [{"type": "text", "text": "')
        for _ in range(size // 65536):
            sys.stdout.write("x" * 65536)
        sys.stdout.write('"}]}, "id": ' + json.dumps(identity) + "}\n")
        sys.stdout.flush()


def write_zeros(identity):
    with writing:
        zeros = "0" + ",0" * 11_000_000
        sys.stdout.write('{"jsonrpc": "2.0", "id": ' + json.dumps(identity) + ', "result": {"tools": [' + zeros + "]}}\n")
        sys.stdout.flush()


# The fault in the cursors of lists; none if the flag is absent.
CURSOR_FAULT = next((flag.partition("=")[2] for flag in FLAGS if flag.startswith("--cursor=")), None)


def faulty_page(method, cursor):
    field, entry = {
        "tools/list": ("tools", lambda name: {"name": name, "inputSchema": {"type": "object"}}),
        "prompts/list": ("prompts", lambda name: {"name": name}),
        "resources/list": ("resources", lambda name: {"name": name, "uri": f"x:{name}"}),
        "resources/templates/list": ("resourceTemplates", lambda name: {"name": name, "uriTemplate": f"x:{name}/{{y}}"}),
    }[method]
    begin = 0 if CURSOR_FAULT == "stuck" else int(cursor or 0)
    last = {"empty": "", "same": "80", "circle": "40"}.get(CURSOR_FAULT)
    following = str(begin + 40) if begin < 80 else last
    return {field: [entry(f"entry_{number}") for number in range(begin, begin + 40)], "nextCursor": following}


def answer(message):
    identity, parameters = message["id"], message.get("params") or {}
    if CURSOR_FAULT and message["method"].endswith("/list"):
        return faulty_page(message["method"], parameters.get("cursor"))
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            if CURSOR_FAULT:
                capabilities |= {"prompts": {}, "resources": {}}
            server = {"name": "scripted", "version": "1"}
            return {"protocolVersion": ERA, "capabilities": capabilities, "serverInfo": server}
        case "tools/list":
            note("listings", "")
            if "--zeros" in FLAGS:
                return write_zeros(identity)
            found, size = tools(), 500
            begin = int(parameters.get("cursor") or 0)
            page = {"tools": found[begin : begin + size]}
            return {**page, "nextCursor": str(begin + size)} if begin + size < len(found) else page
        case "tools/call":
            note("calls", f"{parameters['name']} {time.monotonic()}")
            token = (parameters.get("_meta") or {}).get("progressToken")
            return call(identity, parameters["name"], parameters.get("arguments") or {}, token)
        case "ping":
            note("pings", "")
            return None if "--no-pong" in FLAGS else {}
    return None


def newest(message):
    """Handles messages that only the newest era has. Returns whether the message was one of them."""
    global subscribed
    if message.get("method") == "server/discover":
        capabilities = {"tools": {"listChanged": True}}
        say({"id": message["id"], "result": {"supportedVersions": [NEWEST], "capabilities": capabilities, **READ}})
    elif message.get("method") == "subscriptions/listen":
        subscribed = message["id"]
        note("subscriptions", "")
        parameters = {"_meta": {SUBSCRIPTION: subscribed}, "notifications": message["params"]["notifications"]}
        say({"method": "notifications/subscriptions/acknowledged", "params": parameters})
    else:
        return False
    return True


def serve(message):
    if "--newest" in FLAGS and newest(message):
        return
    if "id" not in message or "method" not in message:
        if message.get("method") == "notifications/cancelled":
            note("cancelled", "")
        if "error" in message:
            note("errors", str(message["error"]))
        return
    is_list = CURSOR_FAULT and message["method"].endswith("/list")
    if message["method"] not in {"initialize", "tools/list", "tools/call", "ping"} and not is_list:
        return say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    if (result := answer(message)) is not None:
        say({"id": message["id"], "result": {**result, **READ} if "--newest" in FLAGS else result})


def main():
    note("starts", str(os.getpid()))
    if "--banner" in FLAGS:
        write("Welcome to the scripted server!\nListening on stdio...\n\n")
    while "--waits" in FLAGS and not (PLACE / "open").exists():
        time.sleep(0.02)
    if "--deaf" in FLAGS:
        time.sleep(3600)
    if "--stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--child" in FLAGS and os.fork() == 0:
        os.close(0), os.close(1), os.close(2)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    for line in sys.stdin:
        if "--single" in FLAGS:
            serve(json.loads(line))
        else:
            threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
    if "--stubborn" in FLAGS:
        time.sleep(3600)


main()
