"""The directories and processes of one test of an AI client: its home directory, the scripted model, and Lockhouse."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import ai_clients
from model_api import ModelApi, Step
from terminal import run_on_terminal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/clients"
PROGRAMS = BUILD / "node_modules/.bin"
CONFIG = """\
{tables}[runs]
wait_seconds = {wait_seconds}
[http]
listen = ["127.0.0.1:{port}"]
auth = "token"
[servers.shop]
command = "{python}"
args = ["{shop}"]
"""
POLICY = 'version = 1\n[servers.shop]\nallow = ["rows", "refund", "wait", "meet", "note", "fail"]\nask = ["buy"]\n'


class Bench:
    """The directories and processes of one client's test, which `name` distinguishes from its other tests. `tables` are added to the
    configuration of Lockhouse. `base` is another directory than the usual one."""

    def __init__(self, lockhouse, client, transport, name, wait_seconds=6, tables="", base=None):
        self.lockhouse, self.client, self.transport = lockhouse, client, transport
        self.base = base or BUILD / "runs" / f"{client.init}-{transport}-{name}"
        if base is None:
            shutil.rmtree(self.base, ignore_errors=True)
        (self.base / "work").mkdir(parents=True)
        self.api = ModelApi()
        self.home = ai_clients.Home(self.base / "home", self.api.url)
        self.port = free_port()
        config = CONFIG.format(tables=tables, wait_seconds=wait_seconds, port=self.port, python=sys.executable, shop=HERE / "shop.py")
        self.policy = self.home.path / ".config/lockhouse/policy.toml"
        self.home.write(".config/lockhouse/config.toml", config)
        self.home.write(".config/lockhouse/policy.toml", POLICY)
        for file in self.policy.parent.iterdir():
            file.chmod(0o600)
        self.environment = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        self.environment |= {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOME": str(self.home.path), "TERM": "xterm-256color"}
        os.environ["CLIENTS_PATH"] = self.environment["PATH"]
        self.daemon = None
        # What is killed when the first call runs: the client, Lockhouse, or nothing.
        self.killer = None

    def run_lockhouse(self, *arguments):
        return subprocess.run([self.lockhouse, *arguments], env=self.environment, cwd=self.base / "work", capture_output=True, text=True, check=True).stdout

    def enter(self, mode="", client=None):
        """Writes the entry of a client for Lockhouse, by default this test's client. `mode` is the answer to the question how the client
        uses the servers."""
        client = client or self.client
        if self.transport == "stdio":
            answers = [("Mode?", mode), ("Write this?", "y"), ("without asking?", "y")]
            command = [self.lockhouse, "init", "--client", client.init]
            status, shown = run_on_terminal(command, answers, env=self.environment, cwd=self.base / "work")
            (self.base / f"init-{client.init}.txt").write_text(shown)
            if status != 0:
                raise RuntimeError(f"lockhouse init ended with {status}: {shown[-500:]}")
        else:
            token = self.run_lockhouse("token", "create", "ada").strip().split()[-1]
            self.environment["LOCKHOUSE_TOKEN"] = token
            self.daemon = subprocess.Popen([self.lockhouse, "serve", "--http", "--answer", client.form], env=self.environment,
                                           cwd=self.base / "work", stderr=open(self.base / "serve.txt", "w"))
            wait_for_port(self.port)
            client.http_entry(self.home, f"http://127.0.0.1:{self.port}/mcp", token)
        client.settings(self.home)
        self.environment |= client.environment(self.home)

    def launch(self, client, name):
        """Starts a client with the prompt of the script. What it prints is in the file `name`."""
        command = [part.replace("$HOME", str(self.home.path)) for part in client.command("go")]
        with open(self.base / name, "w") as output:
            return subprocess.Popen(command, env=self.environment, cwd=self.base / "work", stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def play(self, steps, seconds):
        """Runs the client with a script. Returns the results of the calls."""
        self.api.play([*steps, Step(text="all done")])
        calls = self.recorded_calls()
        child = self.launch(self.client, "client.txt")
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
        end(child, seconds)
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
        end = time.time() + 80
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


def end(child, seconds):
    """Waits for the end of a client, and kills it after some seconds."""
    try:
        child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


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
