"""What happens around the calls of a client: approvals, calls at the same time, short time limits, and the end of processes."""

import tempfile
from pathlib import Path

import ai_clients
from answers import Answer
from bench import Bench, end, kill
from conversation import PYTHON, code, python
from model_api import Step
from outcomes import compare_all
from terminal import Watcher
from wrapping import ANSWER, LOST, WRAPPINGS, compact, replaced

BUY = python("approval on this machine", "from mcp_tools.shop import buy\nprint('asking')\nbuy(item='tea')", Answer(
    '{"item":"tea","done":"buy"}', output="asking\n", changed="shop.buy"))
SHARED = '[sharing]\nengine = "shared"\ndirectory = "~"\n'


def run_code(program):
    return Step("run_code", code("python", PYTHON + program))


def play_approved(bench, steps):
    """Plays calls that a person on this machine approves."""
    watcher = Watcher([bench.lockhouse, "approvals"], bench.environment)
    try:
        return bench.play(steps, 60)
    finally:
        watcher.close()


def check_approval(bench):
    wrapping, form = WRAPPINGS[bench.client.init], bench.client.form
    read = play_approved(bench, [Step(BUY.tool, BUY.arguments)])
    return compare_all([BUY.name], list(map(wrapping.read, read)), [wrapping.show(BUY.answer, form, BUY.tool, BUY.arguments)], bench.api.missing)


def check_ends(bench):
    """Checks the end of the client, and of Lockhouse, during a call."""
    outcomes = {}
    bench.killer = "client"
    bench.play([run_code("wait(seconds=30)")], 60)
    outcomes["the client is killed: nothing is left running"] = "pass" if bench.is_quiet() else f"FAIL: {bench.processes()}"
    bench.killer = "lockhouse serve"
    programs = [code("python", PYTHON + "wait(seconds=20)"), code("python", "6*7")]
    results = bench.play([Step("run_code", program) for program in programs], 60)
    read = [WRAPPINGS[bench.client.init].read(result) for result in results]
    expected = lost(bench.client, programs)
    outcomes |= compare_all(["Lockhouse is killed during a call", "the next call"][: len(expected)], read, expected, bench.api.missing)
    if len(read) > len(expected):
        outcomes["the next call"] = f"FAIL: {read}"
    return outcomes


def lost(client, programs):
    """What the model reads of two calls, if Lockhouse is killed during the first."""
    shown = []
    for text, program in zip(LOST[client.init], programs):
        if text is ANSWER:
            shown.append(WRAPPINGS[client.init].show(Answer("42"), client.form))
        elif text is not None:
            shown.append(replaced(text, {"CALL": compact({"name": "run_code", "args": program})}))
    return shown


def check_processes(lockhouse, client):
    bench = Bench(lockhouse, client, "stdio", "processes")
    try:
        bench.enter()
        return check_approval(bench) | check_ends(bench)
    except Exception as error:
        return {"processes": f"FAIL: {error}"}
    finally:
        bench.close()


def check_timeout(lockhouse, client):
    """Checks that a long run answers with its handle before the client's own time limit, which the environment names."""
    bench = Bench(lockhouse, client, "stdio", "timeout", wait_seconds=45)
    name, wrapping = "a long run under a short time limit: handle", WRAPPINGS[client.init]
    try:
        bench.enter()
        bench.environment[client.timeout_variable] = "9000"
        results = bench.play([run_code("wait(seconds=14)")], 60)
        sentence = 'Still running (N s, waiting for shop.wait). get_result("HANDLE") waits for the answer; do not run it again.'
        expected = wrapping.show(Answer(sentence=sentence), client.form)
        return compare_all([name], list(map(wrapping.read, results)), [expected], bench.api.missing)
    except Exception as error:
        return {name: f"FAIL: {error}"}
    finally:
        bench.close()


def check_overlap(lockhouse, client):
    """Checks whether three calls of one turn are in the upstream server at the same time: each answer is the number of calls there. The calls
    differ, since some clients take equal ones for a mistake of the model."""
    programs = [code("python", f"from mcp_tools.shop import meet\nmeet(count=3, seconds=4)  # {number}") for number in (1, 2, 3)]
    outcomes = overlap(lockhouse, client, "run_code", "", programs, client.overlaps == "always", '"{}"')
    if client.overlaps != "always":
        arguments = [{"count": 3, "seconds": 4 + number / 10} for number in (1, 2, 3)]
        outcomes |= overlap(lockhouse, client, "shop__meet", "direct", arguments, client.overlaps == "readers", "{}")
    return outcomes


def overlap(lockhouse, client, tool, mode, arguments, is_overlapping, shown):
    name = f"the calls of {tool} in one turn run {'at the same time' if is_overlapping else 'one after the other'}"
    # The answers of direct tools are those of the server, in every form.
    form, wrapping = "text" if mode else client.form, WRAPPINGS[client.init]
    bench = Bench(lockhouse, client, "stdio", f"overlap-{mode or 'code'}", wait_seconds=45)
    try:
        bench.enter(mode)
        before = [Step(*client.loading(tool))] if mode and hasattr(client, "loading") else []
        read = [wrapping.read(result) for result in bench.play([*before, Step(tool, arguments)], 60)[len(before) :]]
        expected = wrapping.show(Answer(shown.format(3 if is_overlapping else 1)), form)
        # Claude Code ends the last result of a turn with a line feed.
        is_right = [text.strip() for text in read] == [expected.strip()] * 3
        return {name: "pass" if is_right else f"FAIL: {read} {bench.api.missing[:1]}"}
    except Exception as error:
        return {name: f"FAIL: {error}"}
    finally:
        bench.close()


def check_sharing(lockhouse):
    """Checks that two Codex and one Claude Code use one engine and one process of the upstream server: their calls meet there."""
    # The path of the engine's socket, below the home directory, has a maximum length.
    with tempfile.TemporaryDirectory(prefix="lockhouse-") as base:
        bench = Bench(lockhouse, ai_clients.Codex, "stdio", "sharing", wait_seconds=60, tables=SHARED, base=Path(base))
        try:
            return share(bench, [ai_clients.Codex, ai_clients.Codex, ai_clients.ClaudeCode])
        except Exception as error:
            return {"sharing": f"FAIL: {error}"}
        finally:
            bench.close()
            for pid, _ in bench.processes():
                kill(pid)
            bench.is_quiet()


def share(bench, clients):
    for client in dict.fromkeys(clients):
        bench.enter(client=client)
    program = code("python", "from mcp_tools.shop import meet\nmeet(count=3, seconds=20)")
    bench.api.play([Step("run_code", program), Step(text="all done")])
    children = [bench.launch(client, f"client-{number}.txt") for number, client in enumerate(clients)]
    for child in children:
        end(child, 90)
    # The additions of Claude Code are recognised as such; Codex makes none.
    read = sorted(WRAPPINGS["claude-code"].read(result) for seen in bench.api.seen for result in seen.results)
    shown = sorted(WRAPPINGS[client.init].show(Answer('"3"'), client.form) for client in clients)
    outcomes = {"the calls of three clients meet in one upstream server": "pass" if read == shown else f"FAIL: {read}"}
    # An engine ends some time after its last client.
    for kind, word in (("engine", " engine"), ("process of the upstream server", "shop.py")):
        found = [words for _, words in bench.processes() if word in words]
        outcomes[f"three clients have one {kind}"] = "pass" if len(found) == 1 else f"FAIL: {len(found)}: {found}"
    return outcomes
