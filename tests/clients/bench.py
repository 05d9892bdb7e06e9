"""The directories and processes of one test of an AI client: its home directory, the scripted model, and Lockhouse."""

import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import ai_clients
from model_api import ModelApi, Step

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/clients"
PROGRAMS = BUILD / "node_modules/.bin"
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

    def enter(self, mode=""):
        """Writes the client's entry for Lockhouse. `mode` is the answer to the question how the client uses the servers."""
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
                    kill(pid)
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


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        # A helper process of the client, which has ended by itself.
        pass


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
