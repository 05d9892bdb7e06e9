"""Runs each AI client headless against a scripted model, with Lockhouse as its MCP server, compares whatever the model reads of each
answer with what it must read, and prints a table.

    check_clients.py LOCKHOUSE [CLIENT]... [--part conversation|code-mode|processes|import|sharing] [--transport stdio|http] [--json FILE]

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
from bench import HERE, Bench
from code_modes import CODE_MODES
from conversation import cases, nested_cases
from model_api import Step
from outcomes import compare, compare_all, report
from processes import BUY, check_overlap, check_processes, check_sharing, check_timeout, play_approved
from wrapping import CODE_MODE_WRAPPINGS, HTTP_WRAPPINGS, WRAPPINGS

TOOLS = ["get_result", "run_code", "search_tools"]


def judge(bench, wrapping, form, calls, step_of, play):
    """Plays a conversation, and returns the outcome of each of its calls."""
    read = play([step_of(case) for case in calls])
    # The arguments of a call may depend on the results before it.
    expected = [wrapping.show(case.answer, form, case.tool, case.arguments_after(read[:index]), bench.transport) for index, case in enumerate(calls)]
    return compare_all([case.name for case in calls], [wrapping.read(result) for result in read], expected, bench.api.missing)


def check(lockhouse, client, transport, with_code_mode=False):
    """Runs the whole conversation with one client. Returns a row of outcomes by check."""
    bench = Bench(lockhouse, client, transport, "conversation-beside" if with_code_mode else "conversation")
    outcomes = {}
    try:
        if with_code_mode:
            CODE_MODES[client.init].switch_on(bench.home, bench.environment)
        bench.enter()
        begun = time.time()
        calls, wrapping = cases(client, bench.policy), (WRAPPINGS if transport == "stdio" else HTTP_WRAPPINGS)[client.init]
        answers = judge(bench, wrapping, client.form, calls, lambda case: Step(case.tool, case.arguments), lambda steps: bench.play(steps, 200))
        first = next((seen for seen in bench.api.seen if seen.tools), None)
        listed = sorted(tool for tool in TOOLS for name in (first.tools if first else []) if name.endswith(tool))
        outcomes["list"] = "pass" if listed == TOOLS else f"FAIL: {listed}"
        outcomes |= answers
        outcomes["seconds"] = round(time.time() - begun, 1)
        outcomes["request bytes"] = first.size if first else 0
    except Exception as error:
        outcomes["list"] = f"FAIL: {error}"
    finally:
        bench.close()
    return outcomes


def entry_form(bench):
    """The answer form in the entry that `lockhouse init` wrote."""
    file = getattr(bench.client, "entry_file", bench.client.file)
    found = re.search(r'"--answer",\s*"(\w+)"', (bench.home.path / file).read_text())
    return found.group(1) if found else "text"


def check_code_mode(lockhouse, client):
    """Runs the conversation and sums in a client's own code mode, with both ways in which it can use the servers."""
    mode, wrapping, outcomes = CODE_MODES[client.init], CODE_MODE_WRAPPINGS[client.init], {}
    for exposure in (mode.nesting_mode, "direct"):
        bench = Bench(lockhouse, client, "stdio", f"code-mode-{exposure}")
        try:
            mode.switch_on(bench.home, bench.environment)
            bench.enter(exposure)
            sums = mode.sums(exposure)
            results = bench.play([step for _, step, _ in sums], 60)
            outcomes |= compare_all([name for name, _, _ in sums], [wrapping.read(result) for result in results], [text for _, _, text in sums], bench.api.missing)
            outcomes[f"bytes of the first request, {exposure}"] = bench.api.seen[0].size if bench.api.seen else 0
            if exposure != "direct":
                outcomes["the answer form of the entry"] = compare(entry_form(bench), mode.entry_form)
                outcomes |= judge(bench, wrapping, mode.form, nested_cases(client, bench.policy), mode.case_step, lambda steps: bench.play(steps, 200))
                outcomes |= judge(bench, wrapping, mode.form, [BUY], mode.case_step, lambda steps: play_approved(bench, steps))
        except Exception as error:
            outcomes[exposure] = f"FAIL: {error}"
        finally:
            bench.close()
    return outcomes


def check_import(lockhouse, client):
    """Adds a server with the client's own command, and imports it."""
    bench = Bench(lockhouse, client, "stdio", "import")
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
        is_known = "books: connected, 8 tools" in shown
        return {name: "pass" if is_known else f"FAIL: {shown[-400:]}"}
    except Exception as error:
        return {name: f"FAIL: {error}"}
    finally:
        bench.close()


def parts_of(lockhouse, client, transports):
    """The parts of a client's test: the title of each, its name for `--part`, and the function that returns its outcomes."""
    for transport in transports:
        yield transport, "conversation", lambda: check(lockhouse, client, transport)
    if client.init in CODE_MODES:
        yield "its code mode", "code-mode", lambda: check_code_mode(lockhouse, client)
        if CODE_MODES[client.init].nesting_mode != "code":
            yield "beside its code mode", "code-mode", lambda: check(lockhouse, client, "stdio", with_code_mode=True)
    yield "processes", "processes", lambda: check_processes(lockhouse, client) | check_overlap(lockhouse, client)
    if client.timeout_variable:
        yield "short time limit", "processes", lambda: check_timeout(lockhouse, client)
    yield "import", "import", lambda: check_import(lockhouse, client)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockhouse")
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--part", choices=["conversation", "code-mode", "processes", "import", "sharing"])
    parser.add_argument("--transport", choices=["stdio", "http"])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    transports = [arguments.transport] if arguments.transport else ["stdio", "http"]
    lockhouse, table, failed = os.path.abspath(arguments.lockhouse), {}, 0
    for client in ai_clients.CLIENTS:
        if arguments.clients and client.init not in arguments.clients:
            continue
        for title, part, run in parts_of(lockhouse, client, transports):
            if arguments.part in (None, part):
                failed += report(f"{client.name}, {title}", run(), table)
    if arguments.part == "sharing" or (arguments.part is None and not arguments.clients):
        failed += report("Codex twice and Claude Code, one engine", check_sharing(lockhouse), table)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
    passed = sum(text == "pass" for outcomes in table.values() for text in outcomes.values())
    print(f"{passed} pass, {failed} fail", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
