"""Runs code in a Lockhouse over HTTP: request.py URL|LOG TOKEN. LOG is the log file of `serve --listen 127.0.0.1:0`."""
import json
import re
import sys
import time
import urllib.error
import urllib.request


def address(url_or_log):
    """Returns the URL of the MCP endpoint: the argument itself, or the one in the log file."""
    if url_or_log.startswith("http"):
        return url_or_log
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(url_or_log, encoding="utf-8") as lines:
            found = re.search(r"http://127\.0\.0\.1:\d+/mcp", lines.read())
        if found:
            return found[0]
        time.sleep(0.05)
    sys.exit("the log does not contain the address within 60 s")


def call(url, tool, arguments, bearer):
    """Calls a tool and returns the JSON-RPC response."""
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
    """Runs a program and returns the text of its answer, or the whole response if it is an error."""
    answer = call(url, "run_code", {"language": language, "code": code}, token)
    result = answer.get("result", {"isError": True})
    return answer if result["isError"] else "".join(block.get("text", "") for block in result["content"])


def main(url_or_log, token):
    url = address(url_or_log)
    try:
        run(url, "wrong", "python", "1")
        sys.exit("an invalid token is accepted")
    except urllib.error.HTTPError as error:
        if error.code != 401:
            sys.exit(f"an invalid token is rejected with {error.code} instead of 401")
    for language, code, expected in [
        ("python", "sum(range(10))", 45),
        ("typescript", "return [1, 2].length", 2),
    ]:
        answer = run(url, token, language, code)
        if answer != str(expected):
            sys.exit(f"{language}: {json.dumps(answer)}")
    print("both languages run over HTTP, and an invalid token is rejected")


if __name__ == "__main__":
    main(*sys.argv[1:])
