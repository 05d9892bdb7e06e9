"""The peers of the benchmark: how each is started, how it gets a program, and what isolates the program."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from client import Client

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EVAL_PYTHON = ROOT / "build/eval/venv/bin/python"
DENO = ROOT / "build/peers/node_modules/.bin/deno"
ECHO = {"command": sys.executable, "args": ["-B", str(HERE / "echo_server.py")]}
# Peers that this benchmark does not run yet, each with the reason.
NOT_RUN = {
    "@utcp/code-mode": "its dependency isolated-vm is compiled at installation, for which Node.js headers are needed",
    "code-executor-mcp": "it is not on the npm registry",
    "toolplane, mcp-run-python, Pydantic CodeMode": "not added yet",
}


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
