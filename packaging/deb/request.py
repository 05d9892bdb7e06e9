"""Asks a Lockhouse that serves over HTTP to run code: request.py URL|LOG TOKEN. LOG is that of `serve --listen 127.0.0.1:0`."""
import json
import re
import sys
import time
import urllib.error
import urllib.request


def address(place):
    """Where it listens, as it was told or as the log says."""
    if place.startswith("http"):
        return place
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(place, encoding="utf-8") as lines:
            found = re.search(r"http://127\.0\.0\.1:\d+/mcp", lines.read())
        if found:
            return found[0]
        time.sleep(0.05)
    sys.exit("it does not say where it listens")


def call(url, tool, arguments, bearer):
    """What a tool answers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "smoke-test", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
        "Authorization": f"Bearer {bearer}",
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        text = response.read().decode()
    if text.startswith("{"):
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data[-1])


def run(url, token, language, code):
    """What a program came to, as programs read it."""
    answer = call(url, "run_code", {"language": language, "code": code}, token)
    return answer.get("result", {}).get("structuredContent") or answer


def main(place, token):
    url = address(place)
    try:
        run(url, "wrong", "python", "1")
        sys.exit("a wrong token is not refused")
    except urllib.error.HTTPError as error:
        if error.code != 401:
            sys.exit(f"a wrong token is answered {error.code}")
    for language, code, expected in [
        ("python", "sum(range(10))", 45),
        ("typescript", "return [1, 2].length", 2),
    ]:
        answer = run(url, token, language, code)
        if answer.get("value") != expected:
            sys.exit(f"{language}: {json.dumps(answer)}")
    print("over HTTP both languages answer, and a wrong token is refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
