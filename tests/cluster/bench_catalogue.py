#!/usr/bin/env python3
"""Measures hosts of a cluster with 100 upstream servers that have 10,000 tools together: the first start, a start with stored lists of
tools, `lockhouse status` and `cluster status`, a search, a run that calls a tool, and the memory of a host.

    tests/cluster/bench_catalogue.py target/release/lockhouse [FOLDER]

The tools are copies of those in FOLDER, files with answers to `tools/list`; without it, they are generated.
"""

import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from bench import NATS, Client, Host, free_port

SERVERS, TOOLS, HOSTS = 100, 100, 3
# In the form of a tool of a public server.
SCHEMA = {"type": "object", "required": ["query"], "properties": {
    "query": {"type": "string", "description": "What to look for, in the words of the user"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Maximum number of results"},
    "since": {"type": "string", "format": "date-time", "description": "Only what has changed after this time"}}}


def tool_lists(folder):
    """The tools of each server."""
    found = [tool for path in sorted(pathlib.Path(folder).glob("*.json")) for tool in json.loads(path.read_text())["tools"]] if folder else []
    if not found:
        found = [{"name": "find", "description": "Finds records and returns them, the newest first", "inputSchema": SCHEMA}]
    tools = [found[number % len(found)] | {"name": f"{found[number % len(found)]['name'][:40]}_{number}"} for number in range(SERVERS * TOOLS)]
    return [tools[start:start + TOOLS] for start in range(0, len(tools), TOOLS)]


class Upstream(http.server.BaseHTTPRequestHandler):
    """All servers: that with the number N is at /N."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, parameters = request["method"], request.get("params") or {}
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "many", "version": "1"}},
            "tools/list": {"tools": self.server.lists[int(self.path.strip("/"))]},
            "tools/call": {"content": [{"type": "text", "text": parameters.get("name", "")}]},
            "ping": {},
        }
        if "id" not in request:
            return self.reply(202, b"")
        member = {"result": results[method]} if method in results else {"error": {"code": -32601, "message": "Method not found"}}
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **member}).encode())

    def do_GET(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1_024
    daemon_threads = True


def seconds(action):
    begun = time.perf_counter()
    value = action()
    return time.perf_counter() - begun, value


def configure(host, port):
    configuration = host.home / "config/lockhouse/config.toml"
    servers = "".join(f'[servers.s{number}]\nurl = "http://127.0.0.1:{port}/{number}"\n' for number in range(SERVERS))
    configuration.write_text(configuration.read_text() + servers)
    policy = "version = 1\n" + "".join(f'[servers.s{number}]\nallow = ["*"]\n' for number in range(SERVERS))
    (host.home / "config/lockhouse/policy.toml").write_text(policy)


def resident_mib(pid):
    line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1_024


def any_call(lists):
    """The arguments of `call_tool` for a tool of one of the last servers: any text for each required argument, or none."""
    for number in reversed(range(SERVERS)):
        for tool in lists[number]:
            required = tool["inputSchema"].get("required", [])
            properties = tool["inputSchema"].get("properties", {})
            if all(properties.get(name, {}).get("type") == "string" and "enum" not in properties[name] for name in required):
                return f"'s{number}.{tool['name']}', {({name: 'x' for name in required})}"
    sys.exit("no tool can be called")


def search(client):
    return client.call("search_tools", {"query": "find records", "limit": 20})


def wait_for_tools(host):
    while True:
        health = json.loads(host.command("status", "--json"))[0]
        known = sum(server.get("tools") or 0 for server in health["upstreams"].values())
        if known == SERVERS * TOOLS:
            return
        time.sleep(0.2)


def measure(program, work, lists, nats):
    upstream = Server(("127.0.0.1", 0), Upstream)
    upstream.lists = lists
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    token = Host(program, work, "tokens").command("token", "create", "bench").strip()
    hosts = [Host(program, work, f"c{number}", nats) for number in range(HOSTS)]
    for host in hosts:
        configure(host, upstream.server_port)
    for round in ("first start", "start with stored lists"):
        starts = [seconds(host.start)[0] for host in hosts]
        print(f"{round}: serves after {max(starts):.2f} s at most", flush=True)
        client = Client(hosts[0], token)
        took, _ = seconds(lambda: client.run("from mcp_tools import list_servers\nlen(list_servers())"))
        print(f"  first run, which lists the servers: {took:.2f} s")
        took, _ = seconds(lambda: search(client))
        print(f"  first search: {took:.2f} s")
        took, _ = seconds(lambda: [wait_for_tools(host) for host in hosts])
        print(f"  all lists of tools known at all hosts after further {took:.2f} s")
        took, answer = seconds(lambda: search(client))
        print(f"  search: {took * 1_000:.0f} ms, {len(json.dumps(answer))} bytes")
        code = f"from mcp_tools import call_tool\nstr(call_tool({any_call(lists)}))[:20]"
        took, _ = seconds(lambda: client.run(code))
        print(f"  run with a call: {took * 1_000:.0f} ms; the same again: {seconds(lambda: client.run(code))[0] * 1_000:.0f} ms")
        for command in (["status"], ["cluster", "status"], ["tools", "list"]):
            took, text = seconds(lambda: hosts[0].command(*command))
            print(f"  lockhouse {' '.join(command)}: {took * 1_000:.0f} ms, {len(text.splitlines())} lines")
        print(f"  memory of the engine: {resident_mib(hosts[0].process.pid):.0f} MiB", flush=True)
        for host in hosts:
            host.stop()


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    lists = tool_lists(sys.argv[2] if len(sys.argv) > 2 else None)
    print(f"{SERVERS} servers with {sum(map(len, lists))} tools, {len(json.dumps(lists)) / 1_048_576:.1f} MiB of definitions; {HOSTS} hosts")
    work = pathlib.Path(tempfile.mkdtemp(prefix="lockhouse-bench-"))
    port = free_port()
    server = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(work / "nats")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        measure(program, work, lists, f"nats://127.0.0.1:{port}")
    finally:
        server.terminate()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
