"""Runs each AI client headless against a scripted model, with Lockhouse as its MCP server, and prints a table.

    check_clients.py LOCKHOUSE [CLIENT]... [--part conversation|code-mode|processes] [--transport stdio|http] [--json FILE]

The entry over stdio is the one that `lockhouse init` writes, with its questions answered on a terminal. The entry over HTTP is
the one of docs/connect.md.
"""

import argparse
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import ai_clients
from code_modes import CODE_MODES, checks
from model_api import ModelApi, Step

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/clients"
PROGRAMS = BUILD / "node_modules/.bin"
ROWS = 6000
SUM = sum(number * 1.5 for number in range(1, ROWS + 1))
CONFIG = """\
[runs]
wait_seconds = 3
[http]
auth = "token"
[servers.shop]
command = "{python}"
args = ["{shop}"]
{keys}
"""
POLICY = 'version = 1\n[servers.shop]\nallow = ["rows", "wait", "fail"]\nask = ["buy"]\n'


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


class Terminal:
    """Runs a command on a terminal and answers its questions."""

    def run(command, answers, **options):
        controller, terminal = pty.openpty()
        child = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, **options)
        os.close(terminal)
        shown, questions, at = b"", list(answers), 0
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
            for number, (question, answer) in enumerate(questions):
                found = shown.find(question.encode(), at)
                if found >= 0:
                    at = found + len(question)
                    os.write(controller, answer.encode() + b"\n")
                    del questions[number]
                    break
        return child.wait(), shown.decode(errors="replace")


class Watcher:
    """A person who runs `lockhouse approvals` on a terminal and approves what is asked."""

    def __init__(self, command, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        self.shown = b""
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        answered = 0
        while True:
            try:
                part = os.read(self.terminal, 65536)
            except OSError:
                return
            self.shown += part
            if self.shown.count(b"Approve? [") > answered:
                answered += 1
                # What was typed before the question does not count as an answer.
                time.sleep(0.3)
                os.write(self.terminal, b"y\n")

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


class Bench:
    """The directories and processes of one client's test."""

    def __init__(self, lockhouse, client, transport, keys=""):
        self.lockhouse, self.client, self.transport = lockhouse, client, transport
        self.base = BUILD / "runs" / f"{client.init}-{transport}-{keys.replace(' ', '').replace(chr(34), '') or 'code'}"
        shutil.rmtree(self.base, ignore_errors=True)
        (self.base / "work").mkdir(parents=True)
        self.api = ModelApi()
        self.home = ai_clients.Home(self.base / "home", self.api.url)
        config = CONFIG.format(python=sys.executable, shop=HERE / "shop.py", keys=keys)
        self.port = free_port()
        config = config.replace("[http]", f'[http]\nlisten = ["127.0.0.1:{self.port}"]')
        self.home.write(".config/lockhouse/config.toml", config)
        self.home.write(".config/lockhouse/policy.toml", POLICY)
        for file in (".config/lockhouse/config.toml", ".config/lockhouse/policy.toml"):
            os.chmod(self.home.path / file, 0o600)
        self.environment = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        self.environment |= {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.home.path), "TERM": "xterm-256color"}
        os.environ["CLIENTS_PATH"] = self.environment["PATH"]
        self.daemon = None
        # What is killed when the first call runs: the client, Lockhouse, or nothing.
        self.killer = None

    def run_lockhouse(self, *arguments):
        return subprocess.run([self.lockhouse, *arguments], env=self.environment, cwd=self.base / "work", capture_output=True, text=True, check=True).stdout

    def enter(self, mode="code"):
        """Writes the client's entry for Lockhouse."""
        if self.transport == "stdio":
            answers = [("Mode?", mode), ("Write this?", "y"), ("without asking?", "y")]
            status, shown = Terminal.run([self.lockhouse, "init", "--client", self.client.init], answers, env=self.environment, cwd=self.base / "work")
            (self.base / "init.txt").write_text(shown)
            if status != 0:
                raise RuntimeError(f"lockhouse init ended with {status}: {shown[-500:]}")
        else:
            token = self.run_lockhouse("token", "create", "ada").strip().split()[-1]
            self.environment["LOCKHOUSE_TOKEN"] = token
            self.daemon = subprocess.Popen([self.lockhouse, "serve", "--http", "--answer", self.client.http_answer], env=self.environment,
                                           cwd=self.base / "work", stderr=open(self.base / "serve.txt", "w"))
            wait_for_port(self.port)
            self.client.http_entry(self.home, f"http://127.0.0.1:{self.port}/mcp", token)
        self.client.settings(self.home)
        self.environment |= self.client.environment(self.home)

    def play(self, steps, seconds):
        """Runs the client with a script. Returns the results of the calls, and what the client printed."""
        self.api.play([*steps, Step(text="all done")])
        calls = self.recorded_calls()
        command = [part.replace("$HOME", str(self.home.path)) for part in self.client.command("go")]
        with open(self.base / "client.txt", "w") as output:
            child = subprocess.Popen(command, env=self.environment, cwd=self.base / "work", stdin=subprocess.DEVNULL,
                                     stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            if self.killer:
                self.wait_for_call(calls)
                ours = self.processes()
                if self.killer == "client":
                    victims = group(child.pid) - {pid for pid, _ in ours}
                else:
                    victims = {pid for pid, words in ours if " serve" in words}
                if not victims:
                    raise RuntimeError("there is nothing to kill")
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
            try:
                child.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        return self.api.results()

    def processes(self):
        """The processes of this home directory's Lockhouse, each with its command line."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                home = f"HOME={self.home.path}".encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if home and ("lockhouse" in words.split(" ")[0] or "shop.py" in words) and "approvals" not in words:
                found.append((int(entry.name), words))
        return found

    def recorded_calls(self):
        """The number of times that the audit log names the tool `wait`."""
        log = (self.home.path / ".local/state/lockhouse/audit").glob("*.jsonl")
        return sum(file.read_text(errors="replace").count('"wait"') for file in log)

    def wait_for_call(self, before):
        """Waits until the shop has a further call: the program has begun, and its tool runs."""
        end = time.time() + 40
        while time.time() < end:
            if self.recorded_calls() > before:
                return
            time.sleep(0.1)
        raise RuntimeError("the call did not begin")

    def is_quiet(self):
        end = time.time() + 15
        while time.time() < end and self.processes():
            time.sleep(0.2)
        return not self.processes()

    def close(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
        (self.base / "requests.json").write_text(json.dumps([seen.body for seen in self.api.seen], indent=1))


def group(leader):
    """The processes of a session."""
    members = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == leader:
                members.add(int(entry.name))
        except OSError:
            continue
    return members


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("lockhouse serve --http does not listen")


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
            bench.enter(exposure)
            switch_on(bench.home, bench.environment)
            outcomes |= judge(bench, rows)
            outcomes[f"bytes of the first request, {exposure}"] = bench.api.seen[0].size if bench.api.seen else 0
        except Exception as error:
            outcomes[exposure] = f"FAIL: {error}"
        finally:
            bench.close()
    return outcomes


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
    parser.add_argument("--part", choices=["conversation", "code-mode", "processes"])
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
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
