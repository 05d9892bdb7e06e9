"""Runs the official SDKs' clients, FastMCP and mcporter against Lockhouse, over stdio and HTTP, and prints a table.

    check_sdks.py LOCKHOUSE
"""

import json
import os
import subprocess
import sys

from bench import BUILD, HERE, Bench
from outcomes import report

EXPECTED = {"initialize": "lockhouse", "call": "42", "progress": True, "cancellation": "cancelled"}
TOOLS = ["run_code", "search_tools", "get_result"]


class NoClient:
    """What a Bench needs to know of a client that is not an AI client."""

    init, form = "sdk", "text"

    def http_entry(home, url, token):
        home.entry = {"url": url, "token": token}

    def settings(home):
        pass

    def environment(home):
        return {}


def clients():
    for package in ("sdk-1-20", "sdk-1-32", "@modelcontextprotocol/client"):
        yield f"TypeScript {package}", ["node", str(HERE / "sdks/client.mjs")], {"PACKAGE": package}
    for venv, arguments in (("mcp-1", []), ("mcp-2", []), ("fastmcp", ["fastmcp"])):
        yield f"Python {venv}", [str(BUILD / f"venv-{venv}/bin/python"), "-B", str(HERE / "sdks/client.py"), *arguments], {}


def run(bench, command, more):
    entry = getattr(bench.home, "entry", None) or {"command": bench.lockhouse, "args": ["serve"]}
    environment = {**bench.environment, **more, "SDKS": str(BUILD / "sdks"), "ENTRY": json.dumps(entry)}
    return subprocess.run(command, env=environment, cwd=bench.base / "work", capture_output=True, text=True, timeout=90)


def judge(done):
    if done.returncode != 0:
        return {"run": f"FAIL: status {done.returncode}: {done.stderr[-700:]}"}
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    outcomes = {name: "pass" if seen.get(name) == value else f"FAIL: {seen.get(name)!r}" for name, value in EXPECTED.items()}
    outcomes["list"] = "pass" if seen["list"] == TOOLS else f"FAIL: {seen['list']}"
    outcomes["a call after the cancellation"] = "pass" if "still here" in seen.get("after", "") else f"FAIL: {seen.get('after')!r}"
    words = [line for line in done.stderr.splitlines() if "warn" in line.lower() or "error" in line.lower()]
    outcomes["clean close, no warning"] = "pass" if not words else f"FAIL: {words[:2]}"
    return outcomes


def mcporter(bench):
    """Lists and calls with mcporter, whose configuration names the server."""
    entry = getattr(bench.home, "entry", None)
    server = {"url": entry["url"], "headers": {"Authorization": f"Bearer {entry['token']}"}} if entry else {"command": bench.lockhouse, "args": ["serve"]}
    bench.home.write("mcporter.json", {"mcpServers": {"lockhouse": server}})
    program = [str(BUILD / "sdks/node_modules/.bin/mcporter"), "--config", str(bench.home.path / "mcporter.json")]
    listed = run(bench, [*program, "list", "lockhouse"], {})
    called = run(bench, [*program, "call", "lockhouse.run_code", "language=python", "code=40 + 2"], {})
    return {
        "list": "pass" if "run_code" in listed.stdout else f"FAIL: {(listed.stdout + listed.stderr)[-300:]}",
        "call": "pass" if "42" in called.stdout else f"FAIL: {(called.stdout + called.stderr)[-300:]}",
    }


def main():
    lockhouse, table, failed = os.path.abspath(sys.argv[1]), {}, 0
    for transport in ("stdio", "http"):
        bench = Bench(lockhouse, NoClient, transport, "sdks")
        try:
            if transport == "http":
                bench.enter()
            for name, command, more in clients():
                failed += report(f"{name}, {transport}", judge(run(bench, command, more)), table)
            failed += report(f"mcporter, {transport}", mcporter(bench), table)
        finally:
            bench.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
