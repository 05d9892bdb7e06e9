"""Runs each AI client headless against a scripted model, with Lockhouse as its MCP server, and prints a table.

    check_clients.py LOCKHOUSE [CLIENT]... [--part conversation|code-mode|processes|import] [--transport stdio|http] [--json FILE]

The entry over stdio is the one that `lockhouse init` writes, with its questions answered on a terminal. The entry over HTTP is
the one of docs/connect.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import ai_clients
from bench import HERE, Bench, Watcher
from code_modes import CODE_MODES, checks
from model_api import Step


ROWS = 6000
SUM = sum(number * 1.5 for number in range(1, ROWS + 1))


def code(language, program, **more):
    return Step("run_code", {"language": language, "code": program, **more})


def handle_of(results):
    found = re.search(r'get_result\(\\*"([0-9a-f-]+)\\*"', results[-1]) if results else None
    return {"handle": found.group(1) if found else "none"}


PYTHON = "from mcp_tools.shop import rows, wait, fail, buy\n"
PLAIN = [
    ("list", None, lambda text: True),
    ("python", code("python", "print(6*7)\n1+1"), lambda text: "42" in text or "2" in text),
    ("typescript", code("typescript", "[1, 2, 3].map(n => n * 2)"), lambda text: compact(text).find("[2,4,6]") >= 0),
    ("search", Step("search_tools", {"query": "orders"}), lambda text: "shop.rows" in text),
    ("call", code("python", PYTHON + "rows(count=3)[2]"), lambda text: "4.5" in text),
    ("parallel calls", code("typescript", "(await Promise.all([1, 2, 3].map(n => shop.rows({count: n})))).length"), lambda text: "3" in text),
    ("error", code("python", "1/0"), lambda text: "ZeroDivisionError" in text),
    ("tool error", code("python", PYTHON + "fail()"), lambda text: "the shop is closed" in text),
    ("denied", code("python", "from mcp_tools import call_tool\ncall_tool('shop', 'drop', {})"), lambda text: "drop" in text),
    ("sum over 6,000 rows", code("python", PYTHON + f"sum(r['amount'] for r in rows(count={ROWS}))"), lambda text: str(SUM) in text or str(int(SUM)) in text),
    ("a cut value is not whole", code("python", PYTHON + f"rows(count={ROWS})"), lambda text: "Value cut" in text and not is_json(inner(text))),
    ("string", code("python", "'a word'"), lambda text: "a word" in text),
    ("long run: handle", code("python", PYTHON + "wait(seconds=5)\n'after the wait'"), lambda text: "get_result(" in text),
    ("long run: answer", Step("get_result", handle_of), lambda text: "after the wait" in text or "Still running" in text),
    ("approval, nobody asked", code("python", PYTHON + "buy(item='tea')"), lambda text: "approvals" in text),
]


def compact(text):
    return re.sub(r"\s", "", text)


def inner(text):
    """The text of an answer, which some clients wrap into JSON of their own."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list) and value and isinstance(value[0], dict) and "text" in value[0]:
        return value[0]["text"]
    return value["output"] if isinstance(value, dict) and isinstance(value.get("output"), str) else text


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def check(lockhouse, client, transport):
    """Runs the whole script of one client. Returns a row of outcomes by check."""
    bench = Bench(lockhouse, client, transport)
    outcomes = {}
    try:
        bench.enter()
        steps = [step for _, step, _ in PLAIN if step is not None]
        begun = time.time()
        results = bench.play(steps, 150)
        first = next((seen for seen in bench.api.seen if seen.tools), None)
        listed = [name for name in (first.tools if first else {}) if name.endswith(("run_code", "search_tools", "get_result"))]
        outcomes["list"] = "pass" if any(name.endswith("run_code") for name in listed) else f"FAIL: {listed}"
        for index, (name, step, is_right) in enumerate([row for row in PLAIN if row[1] is not None]):
            if index >= len(results):
                outcomes[name] = "FAIL: no result" + (f" ({bench.api.missing[0][:120]})" if bench.api.missing else "")
            else:
                outcomes[name] = "pass" if is_right(results[index]) else f"FAIL: {results[index][:200]!r}"
        outcomes["seconds"] = round(time.time() - begun, 1)
        outcomes["request bytes"] = first.size if first else 0
    except Exception as error:
        outcomes["list"] = f"FAIL: {error}"
    finally:
        bench.close()
    return outcomes


def judge(bench, rows, seconds=90):
    """Plays the steps of named checks, and returns the outcome of each."""
    results = bench.play([step for _, step, _ in rows], seconds)
    outcomes = {}
    for index, (name, _, is_right) in enumerate(rows):
        if index >= len(results):
            outcomes[name] = f"FAIL: no result {bench.api.missing[:1]}"[:300]
        else:
            outcomes[name] = "pass" if is_right(results[index]) else f"FAIL: {results[index][:300]!r}"
    return outcomes


def check_code_mode(lockhouse, client):
    """Runs the checks of a client's own code mode, with both ways in which it can use the servers."""
    switch_on, mode = CODE_MODES[client.init]
    outcomes = {}
    for exposure, rows in checks(mode).items():
        bench = Bench(lockhouse, client, "stdio", f"# {exposure}")
        try:
            bench.enter("" if exposure == "code" else exposure)
            switch_on(bench.home, bench.environment)
            outcomes |= judge(bench, rows)
            outcomes[f"bytes of the first request, {exposure}"] = bench.api.seen[0].size if bench.api.seen else 0
        except Exception as error:
            outcomes[exposure] = f"FAIL: {error}"
        finally:
            bench.close()
    return outcomes


def check_import(lockhouse, client):
    """Adds a server with the client's own command, and imports it."""
    bench = Bench(lockhouse, client, "stdio", "# import")
    name = "a server of the client's own `mcp add` is imported"
    try:
        if not hasattr(client, "add_server"):
            return {name: "the client has no such command that runs without a person"}
        (bench.home.path / ".config/lockhouse/config.toml").unlink()
        command = client.add_server([sys.executable, str(HERE / "shop.py")])
        added = subprocess.run(command, env=bench.environment, cwd=bench.base / "work", capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if added.returncode != 0:
            return {name: f"FAIL: {' '.join(command)}: {(added.stdout + added.stderr)[-300:]}"}
        shown = bench.run_lockhouse("import", "--from", client.init, "--yes")
        is_known = "books: connected, 4 tools" in shown
        return {name: "pass" if is_known else f"FAIL: {shown[-400:]}"}
    except Exception as error:
        return {name: f"FAIL: {error}"}
    finally:
        bench.close()


def check_timeout(lockhouse, client):
    """Checks that a long run answers with its handle before the client's own time limit, which the environment names."""
    bench = Bench(lockhouse, client, "stdio", "# timeout")
    try:
        config = bench.home.path / ".config/lockhouse/config.toml"
        config.write_text(config.read_text().replace("wait_seconds = 3", "wait_seconds = 45"))
        bench.enter()
        bench.environment[client.timeout_variable] = "9000"
        row = ("a long run under a short time limit: handle", code("python", PYTHON + "wait(seconds=14)"), lambda text: "get_result(" in text)
        return judge(bench, [row], 60)
    finally:
        bench.close()


def check_processes(lockhouse, client):
    """Checks an approval by a person on this machine, the end of Lockhouse during a call, and the end of the client."""
    outcomes = {}
    bench = Bench(lockhouse, client, "stdio", "# processes")
    try:
        bench.enter()
        watcher = Watcher([lockhouse, "approvals"], bench.environment)
        outcomes |= judge(bench, [("approval on this machine", code("python", PYTHON + "buy(item='tea')"), lambda text: "tea" in text)], 60)
        watcher.close()
        bench.killer = "client"
        bench.play([code("python", PYTHON + "wait(seconds=30)")], 60)
        outcomes["the client is killed: nothing is left running"] = "pass" if bench.is_quiet() else f"FAIL: {bench.processes()}"
        bench.killer = "lockhouse serve"
        rows = [("Lockhouse is killed during a call: the model sees an error", code("python", PYTHON + "wait(seconds=20)"), lambda text: "waited" not in text),
                ("afterwards", code("python", "6*7"), lambda text: True)]
        outcomes |= judge(bench, rows, 60)
        results = bench.api.results()
        again = len(results) > 1 and "42" in results[1]
        outcomes["afterwards"] = "the client starts it again" if again else "the client does not start it again in this conversation"
        if client.timeout_variable:
            outcomes |= check_timeout(lockhouse, client)
    except Exception as error:
        outcomes["processes"] = f"FAIL: {error}"
    finally:
        bench.close()
    return outcomes


def report(title, outcomes, table):
    """Prints the outcomes of one client, and returns the number of failures."""
    table[title] = outcomes
    wrong = {name: text for name, text in outcomes.items() if str(text).startswith("FAIL")}
    passed = sum(text == "pass" for text in outcomes.values())
    print(f"{title}: {passed} pass, {len(wrong)} fail", flush=True)
    for name, text in outcomes.items():
        if text != "pass":
            print(f"    {name}: {text}", flush=True)
    return len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockhouse")
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--part", choices=["conversation", "code-mode", "processes", "import"])
    parser.add_argument("--transport", choices=["stdio", "http"])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    transports = [arguments.transport] if arguments.transport else ["stdio", "http"]
    lockhouse, table, failed = os.path.abspath(arguments.lockhouse), {}, 0
    for client in ai_clients.CLIENTS:
        if arguments.clients and client.init not in arguments.clients:
            continue
        for transport in transports if arguments.part in (None, "conversation") else []:
            failed += report(f"{client.name}, {transport}", check(lockhouse, client, transport), table)
        if arguments.part in (None, "code-mode") and client.init in CODE_MODES:
            failed += report(f"{client.name}, its code mode", check_code_mode(lockhouse, client), table)
        if arguments.part in (None, "processes"):
            failed += report(f"{client.name}, processes", check_processes(lockhouse, client), table)
        if arguments.part in (None, "import"):
            failed += report(f"{client.name}, import", check_import(lockhouse, client), table)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
