"""Clients while a service is started again: clients.py URL TOKEN SECONDS. Each asks for a sum, waits, asks again, on a connection of
its own, and tells what became of it."""
import collections
import json
import sys
import threading
import time
import urllib.error
import urllib.request

url, token, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
outcomes = collections.Counter()
until = time.monotonic() + seconds


def ask(number):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "boot-test", "version": "1"},
    }
    arguments = {"language": "python", "code": f"{number} + 1"}
    params = {"name": "run_code", "arguments": arguments, "_meta": meta}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "run_code",
        "Authorization": f"Bearer {token}",
        "Connection": "close",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
            text = response.read().decode()
        data = text if text.startswith("{") else [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
        value = json.loads(data).get("result", {}).get("structuredContent", {}).get("value")
        return "answered" if value == number + 1 else f"a wrong answer: {data[:300]}"
    except urllib.error.HTTPError as error:
        return f"told to come again ({error.code})" if error.headers.get("Retry-After") else f"HTTP {error.code}"
    except urllib.error.URLError as error:
        return f"not connected: {error.reason}"
    except OSError as error:
        return f"lost: {error}"


def client(first):
    number = first
    while time.monotonic() < until:
        outcomes[ask(number)] += 1
        number += 1
        time.sleep(0.1)


threads = [threading.Thread(target=client, args=(index * 1000,)) for index in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(dict(outcomes))
bad = [outcome for outcome in outcomes if not outcome.startswith(("answered", "told to come again"))]
sys.exit(1 if bad or not outcomes["answered"] else 0)
