"""Messages of MCP of both kinds of protocol versions, with the headers that belong to them, and changes of their JSON."""

import json

from .mutation import INTEGERS, mutate

NEW, OLD = "2026-07-28", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
# These stand for the bearer token and the session id, which are written into the bytes when they are sent: so a case has the
# same bytes in each run, except for these two values, which have the same length.
TOKEN = "lh_" + "T" * 49
SESSION = "5" * 64
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "fuzzer", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "tasks": {}},
}
HANDLE = "r-0199aaaa00007000"
CALLS = [
    ("run_code", {"language": "python", "code": "print(6*7)"}),
    ("run_code", {"language": "typescript", "code": "console.log(6*7)", "timeout": 2, "servers": ["echo"]}),
    ("run_code", {"language": "python", "code": "from mcp_tools.echo import echo\necho(text='x')", "session": "s",
    "wait_s": 0.1}),
    ("get_result", {"handle": HANDLE, "offset": 1}),
    ("search_tools", {"query": "echo", "limit": 3, "detail": "full"}),
    ("health", {}),
    ("echo__echo", {"text": "x", "n": [1, -0.0, 1e300, None, True, {"a": {"b": "é\u2028😀"}}]}),
]
OTHERS = [
    ("tools/list", {}), ("tools/list", {"cursor": "1"}), ("ping", {}), ("server/discover", {}), ("resources/list", {}),
    ("resources/templates/list", {}), ("resources/read", {"uri": "lockhouse://result/" + HANDLE}),
    ("resources/subscribe", {"uri": "a:b"}),
    ("prompts/list", {}), ("prompts/get", {"name": "p", "arguments": {"a": "b"}}), ("logging/setLevel", {"level": "info"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}}),
    ("tasks/get", {"taskId": HANDLE}), ("tasks/update", {"taskId": HANDLE, "inputResponses": {"q": {"action": "accept"}}}),
    ("tasks/cancel", {"taskId": HANDLE}), ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("notifications/cancelled", {"requestId": 1}), ("notifications/initialized", {}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "f", "version": "0"}}),
]
METHODS = [method for method, _ in OTHERS] + ["tools/call"]
ODD_TEXTS = ["", "\0", "a" * 300, "é" * 100, "\ud800", "\u2028", "../../etc/passwd", "$serde_json::private::RawValue", "[0,0]",
    "lockhouse://", TOKEN, SESSION]


def message(random):
    """Returns a valid message, and whether it is one of the newest protocol version."""
    is_new = random.random() < 0.5
    method, parameters = ("tools/call", None) if random.random() < 0.4 else random.choice(OTHERS)
    if parameters is None:
        # Programs cost much more than other requests.
        name, arguments = random.choice(CALLS if random.random() < 0.15 else CALLS[3:])
        parameters = {"name": name, "arguments": arguments}
        if random.random() < 0.1:
            parameters |= {"requestState": "s", "inputResponses": {"q": {"action": "decline"}}, "task": {"ttl": 1000}}
    parameters = json.loads(json.dumps(parameters))
    if is_new or random.random() < 0.1:
        parameters["_meta"] = json.loads(json.dumps(META))
    if random.random() < 0.1:
        parameters.setdefault("_meta", {})["progressToken"] = random.choice([1, "t"])
    made = {"jsonrpc": "2.0", "id": random.choice([1, 2, "a", 2**40]), "method": method, "params": parameters}
    if method.startswith("notifications/"):
        del made["id"]
    if not is_new and random.random() < 0.1:
        made = {"jsonrpc": "2.0", "id": random.choice([0, 1, "a"]), "result": {"action": "accept", "content": {"a": 1}}}
    return made, is_new


def headers(random, made, is_new):
    """Returns the headers of a request with this message."""
    lines = [("Host", "localhost"), ("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
    if random.random() < 0.85:
        lines.append(("Authorization", f"Bearer {TOKEN}"))
    if is_new:
        lines += [("MCP-Protocol-Version", NEW), ("Mcp-Method", str(made.get("method")))]
        parameters = made.get("params")
        name = (parameters.get("name") or parameters.get("uri")) if isinstance(parameters, dict) else None
        if name:
            lines.append(("Mcp-Name", random.choice([str(name)] * 8 + ["=?base64?cnVuX2NvZGU=?=", "=?base64?!!?=", "é"])))
    elif made.get("method") != "initialize" or random.random() < 0.1:
        lines += [("MCP-Protocol-Version", random.choice(OLD)), ("Mcp-Session-Id", SESSION)]
    if random.random() < 0.1:
        lines.append(("Idempotency-Key", random.choice(["k", "0199aaaa-0000-7000-8000-000000000000", "x" * 300])))
    return lines


def _odd(random):
    number = random.choice(INTEGERS)
    return random.choice([
        None, True, False, number, -number, number / 3, 1e300, -0.0, [], {}, [[]], random.choice(ODD_TEXTS),
        random.choice(METHODS),
        [0] * random.choice([1, 100]), {str(key): key for key in range(random.choice([1, 60]))},
        {"$serde_json::private::Number": "1e5"},
        {"$serde_json::private::RawValue": "[" * 200}])


def _places(value):
    """Returns each place in a JSON value, as its list or object and its index or name."""
    found, left = [], [value]
    while left:
        holder = left.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                left.append(holder[key])
    return found


def change_json(random, made):
    """Changes values, names and members of a message."""
    for _ in range(random.choice([1, 1, 2, 4])):
        places = _places(made)
        # Changes of the members of JSON-RPC itself are mostly refused alike.
        deeper = [(holder, key) for holder, key in places if holder is not made]
        if deeper and random.random() < 0.85:
            places = deeper
        if not places:
            return made
        holder, key = random.choice(places)
        what = random.random()
        if what < 0.5:
            holder[key] = _odd(random)
        elif what < 0.65:
            del holder[key]
        elif what < 0.8 and isinstance(holder, dict):
            holder[random.choice(ODD_TEXTS)] = holder.pop(key)
        else:
            other, other_key = random.choice(places)
            holder[key] = json.loads(json.dumps(other[other_key])) if isinstance(other, list) or other_key in other else None
    return made


def _nested(random):
    levels = random.choice([50, 98, 99, 100, 101, 127, 128, 129, 5000, 100_000])
    opening, closing = random.choice([("[", "]"), ('{"a":', "}")])
    return opening * levels + "1" + closing * random.choice([levels, levels, 0])


def _large(random):
    """Returns JSON near a limit: of values, of the size of a body that is parsed by itself, and of any body."""
    count = random.choice([9_900, 10_000, 10_001, 70_000])
    size = random.choice([65_000, 65_536, 65_537, 200_000, 1_000_000, 2_097_152 - 200, 2_097_152, 2_200_000])
    items = random.choice(["0", "{}", '""', "-1.5e3", '"\\u00e9"', '{"a":[]}'])
    return random.choice(["[" + ",".join([items] * count) + "]", '"' + "x" * size + '"', '"' + "\\u0041" * (size // 6) + '"',
        " " * size + "1", "1" * min(size, 70_000)])


def to_text(random, made):
    """Writes a message, sometimes as no serializer does."""
    text = json.dumps(made, ensure_ascii=random.random() < 0.5, separators=random.choice([(",", ":"), (", ", ": ")]))
    what = random.random()
    if what < 0.06:
        text = text.replace(random.choice(["1", '"x"', "{}", '"a"', "null"]), _nested(random), 1)
    elif what < 0.09:
        text = text.replace(random.choice(["1", '"x"', "{}", '"a"', "null"]), _large(random), 1)
    elif what < 0.14:
        name = random.choice(["id", "method", "params", "jsonrpc", "_meta"])
        text = text.replace("{", f'{{"{name}":{json.dumps(_odd(random))},', random.choice([1, 2]))
    elif what < 0.17:
        text = "[" + ",".join([text] * random.choice([1, 2, 40])) + "]"
    data = text.encode("utf-8", "surrogatepass")
    return mutate(random, data) if random.random() < 0.12 else data
