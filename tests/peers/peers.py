"""The peers of the benchmark: how each is started, how it gets a program, and what isolates the program."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from client import Client

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EVAL_PYTHON = ROOT / "build/eval/venv/bin/python"
BUILD = ROOT / "build/peers"
DENO = BUILD / "node_modules/.bin/deno"
ECHO = {"command": sys.executable, "args": ["-B", str(HERE / "echo_server.py")]}
# Peers that this benchmark does not run, each with the reason.
NOT_RUN = {"code-executor-mcp": "the npm registry answers 404 Not Found; the PyPI package of this name is another project"}


class Server:
    """A peer that is an MCP server. A program that it cannot run is None."""

    def __init__(self, name, isolation, command, tool, arguments_of, programs, environment=None):
        self.name, self.isolation, self.command = name, isolation, command
        self.tool, self.arguments_of, self.programs = tool, arguments_of, programs
        self.environment = environment or {}

    def start(self):
        """Starts the server and returns a client that has initialized the connection."""
        return Client(self.command, self.tool, self.arguments_of, self.environment)


class Process:
    """A peer that is a program: each run starts a process and waits for its output."""

    def __init__(self, name, isolation, command):
        self.name, self.isolation, self.command = name, isolation, command
        self.programs = {"trivial": ("1+1", "2"), "one call": None, "sequence": None}

    def start(self):
        """Returns the peer itself, which keeps no process."""
        return self

    def run(self, _program, expected):
        """Runs the command and returns the seconds until it has ended."""
        started = time.perf_counter()
        output = subprocess.run(self.command, capture_output=True, text=True, check=True).stdout
        took = time.perf_counter() - started
        if output.strip() != expected:
            raise RuntimeError(f"{self.name}: {output[:200]}")
        return took

    def together(self, _program, _expected, at_a_time, runs):
        """Runs the command `runs` times with `at_a_time` processes at a time, and returns the seconds for all."""
        started, running = time.perf_counter(), []
        for _ in range(runs):
            running.append(subprocess.Popen(self.command, stdout=subprocess.DEVNULL))
            if len(running) == at_a_time:
                running.pop(0).wait()
        for process in running:
            process.wait()
        return time.perf_counter() - started

    def close(self):
        """Does nothing: no process is kept."""


def lockhouse(binary, language, programs, scratch):
    """Lockhouse with one language; `scratch` is a directory for its files."""
    servers, policy = scratch / "servers.json", scratch / "policy.toml"
    servers.write_text(json.dumps({"mcpServers": {"echo": ECHO}}))
    policy.write_text('version = 1\n[servers.echo]\nallow = ["*"]\n')
    command = [binary, "serve", "--answer", "structured", "--servers", str(servers), "--policy", str(policy)]
    names = {"python": "Python", "typescript": "TypeScript"}
    environment = {f"XDG_{kind}_HOME": str(scratch / kind.lower()) for kind in ("STATE", "CONFIG", "CACHE")}
    return Server(f"Lockhouse, {names[language]}", "process per run: Landlock, seccomp, namespaces", command, "run_code",
                  lambda code: {"language": language, "code": code}, programs, environment)


def code_modes(scratch):
    """The peers that prepare.sh installs into build/peers, each with the name of its installation."""
    python, servers = str(BUILD / "venv/bin/python"), str(scratch / "servers.json")
    # Some of these servers report a failed program as an ordinary result, so the expected text includes the field of the value.
    sequence = "r = 0\nfor i in range(100):\n    r += (await echo_add(a=i, b=1))['sum']\nr"
    toolplane = {"trivial": ("1+1", '"value": 2,'), "one call": ("await echo_add(a=1, b=2)", '"value": {"sum": 3}'), "sequence": (sequence, '"value": 5050,')}
    pydantic = {"trivial": ("1+1", '"text": "2"'), "one call": ("(await echo_add(a=1, b=2))['sum']", '"text": "3"'), "sequence": (sequence, '"text": "5050"')}
    utcp = {"trivial": ("return 1+1", '"text": "2"'), "one call": ("return echo.echo_add({a: 1, b: 2}).sum", '"text": "3"'),
            "sequence": ("let s = 0; for (let i = 0; i < 100; i++) s += echo.echo_add({a: i, b: 1}).sum; return s", '"text": "5050"')}
    # mcp-run-python has no tools.
    pyodide = {"trivial": ("1+1", r"<return_value>\n2\n</return_value>"), "one call": None, "sequence": None}
    configuration = scratch / "toolplane.toml"
    configuration.write_text(f"[mcp.servers.echo]\ncommand = {json.dumps(ECHO['command'])}\nargs = {json.dumps(ECHO['args'])}\n")
    # Toolplane keeps files in the home directory. mcp-run-python starts the `deno` of the path, and leaves a directory if it is killed.
    home = {"HOME": str(scratch)}
    deno = {"PATH": f"{DENO.parent}:{os.environ['PATH']}", "DENO_DIR": str(BUILD / "deno"), "TMPDIR": str(scratch)}
    return {
        "toolplane": Server("Toolplane", "interpreter in Rust (Monty), one for all runs", [python, "-m", "toolplane.cli", "serve", "mcp", "--config", str(configuration)],
                            "execute_code", lambda code: {"code": code}, toolplane, home),
        "pydantic-ai-harness": Server("Pydantic AI CodeMode", "interpreter in Rust (Monty), worker process", [python, "-B", str(HERE / "pydantic_codemode.py"), servers],
                                      "run_code", lambda code: {"code": code}, pydantic),
        "utcp-code-mode": Server("@utcp/code-mode", "V8 isolate per run in the server's process", [str(BUILD / "utcp/node"), str(HERE / "utcp_server.mjs"), str(BUILD / "utcp"), servers],
                                 "run_code", lambda code: {"code": code}, utcp),
        "mcp-run-python": Server("mcp-run-python", "one Pyodide for all runs, permissions of Deno", [python, "-m", "mcp_run_python", "stdio"],
                                 "run_python_code", lambda code: {"python_code": code}, pyodide, deno),
    }


def all_peers(binary, scratch):
    """Returns the peers that are installed, and the names of the others with the reason."""
    python = {"trivial": ("1+1", "2"), "one call": ("from mcp_tools.echo import add\nadd(a=1, b=2)['sum']", "3"),
              "sequence": ("from mcp_tools.echo import add\nsum(add(a=i, b=1)['sum'] for i in range(100))", "5050")}
    typescript = {"trivial": ("1+1", "2"), "one call": ("(await echo.add({a: 1, b: 2})).sum", "3"),
                  "sequence": ("let s = 0; for (let i = 0; i < 100; i++) s += (await echo.add({a: i, b: 1})).sum;\ns", "5050")}
    # CodeMode permits 50 calls in one program.
    codemode = {"trivial": ("return 1+1", "2"), "one call": ("return await call_tool('echo_add', {'a': 1, 'b': 2})", "3"),
                "half sequence": ("r = 0\nfor i in range(50):\n    r = await call_tool('echo_add', {'a': i, 'b': 1})\nreturn r", "50")}
    peers, missing = [lockhouse(binary, "python", python, scratch), lockhouse(binary, "typescript", typescript, scratch)], dict(NOT_RUN)
    servers = scratch / "servers.json"
    if EVAL_PYTHON.exists():
        peers.append(Server("FastMCP CodeMode", "interpreter in Rust (Monty), worker processes", [str(EVAL_PYTHON), "-B", str(ROOT / "tests/eval/codemode.py"), str(servers)],
                            "execute", lambda code: {"code": code}, codemode))
        peers.append(Server("pydantic-monty", "interpreter in Rust, worker processes", [str(EVAL_PYTHON), "-B", str(HERE / "monty_server.py")],
                            "run_code", lambda code: {"code": code}, {"trivial": ("1+1", "2")}))
    else:
        missing["FastMCP CodeMode, pydantic-monty"] = "tests/eval/prepare.sh could not install them"
    for installation, peer in code_modes(scratch).items():
        if (BUILD / f"{installation}.installed").exists():
            peers.append(peer)
        else:
            failed = BUILD / f"{installation}.failed"
            missing[peer.name] = failed.read_text().strip() if failed.exists() else "tests/peers/prepare.sh has not installed it"
    python3 = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    peers.append(Process("python3 -c", "none", [python3, "-c", "print(1+1)"]))
    bind = ["--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"]
    processes = [("node -e", "none", shutil.which("node"), ["-e", "console.log(1+1)"]),
                 ("deno eval", "V8 and permissions of Deno", str(DENO) if DENO.exists() else None, ["eval", "console.log(1+1)"]),
                 ("bwrap, python3", "namespaces of bubblewrap", shutil.which("bwrap"), [*bind, python3, "-c", "print(1+1)"])]
    for name, isolation, program, arguments in processes:
        if program:
            peers.append(Process(name, isolation, [program, *arguments]))
        else:
            missing[name] = "it is not installed"
    return peers, missing
