"""Tests that ten public servers work in the sandbox that `lockhouse setup` proposes, over three starts with writes between
them. Usage: check_restarts.py LOCKHOUSE [--without-sandbox]

A new home directory has Claude Desktop's file with the ten servers, and `lockhouse setup --yes` takes them over. Each start
runs the command that setup has written into this file, and ends the engine and the servers afterwards. In each start eight
servers write, and return what this and all former starts wrote. As a control, a server then accesses files that it was not
granted. Prints a table, and ends with 1 if an outcome is wrong. With --without-sandbox the sandbox is removed after setup,
to show that the test then fails.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import api
import processes
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from session import parse_answer

from restarts import CONTROL, SERVERS, Server

STARTS = (1, 2, 3)
PROFILE = {"profile": "default"}
ROW = "{:<11} {:<58} {:<8} {:<8} {:<8} {}"
TIMEOUT_SECONDS = 300
# Maximum time from the end of a start until the last process of a server has exited.
LEAVE_SECONDS_MAX = 15
LOG_LINES = 15


class Bench:
    """A home directory with the AI client's file, Lockhouse's files, and the files of the servers below `work`."""

    def __init__(self, home: Path, address: str):
        self.home, self.work, self.address = home, home / "work", address
        self.client_file = home / ".config/Claude/claude_desktop_config.json"
        self.config = home / ".config/lockhouse/config.toml"
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb"}
        for folder in ("files", "memory", "sqlite", "duckdb", "alchemy", "excel", "chroma", "repository"):
            (self.work / folder).mkdir(parents=True)
        (self.work / "key").write_text("secret")
        for command in ("init --quiet --initial-branch=main", "config user.name Ada", "config user.email ada@example.org"):
            self.run("git", "-C", str(self.work / "repository"), *command.split())

    def run(self, *command: str) -> str:
        ended = subprocess.run(command, env=self.environment, cwd=self.home, capture_output=True, text=True)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def filled(self, text: str, n: int = 0) -> str:
        return text.replace("@WORK@", str(self.work)).replace("@API@", self.address).replace("@N@", str(n))

    def entry(self, server: Server) -> dict:
        program, *arguments = server.package.command()
        environment = {name: self.filled(value) for name, value in server.environment.items()}
        return {"command": program, "args": [*arguments, *map(self.filled, server.arguments)], "env": environment}

    def write_files(self):
        self.client_file.parent.mkdir(parents=True)
        self.client_file.write_text(json.dumps({"mcpServers": {server.name: self.entry(server) for server in SERVERS}}))
        self.config.parent.mkdir()
        tables = "".join(f'[servers.{server.name}]\nallow = ["*"]\n' for server in SERVERS)
        self.config.with_name("policy.toml").write_text(f"version = 1\n{tables}")

    def remove_sandbox(self):
        lines = self.config.read_text().splitlines(keepends=True)
        self.config.write_text("".join(line for line in lines if not line.startswith("sandbox =")))

    def sandboxes(self) -> dict[str, Any]:
        tables = tomllib.loads(self.config.read_text()).get("servers", {})
        return {server.name: tables.get(server.name, {}).get("sandbox") for server in SERVERS}

    async def start(self, n: int, said) -> dict[str, list[str]]:
        """Runs the program of each server with the client's entry for Lockhouse. Returns the faults of each server."""
        (self.work / "repository" / f"start-{n}.txt").write_text("written by the user\n")
        entry = json.loads(self.client_file.read_text())["mcpServers"]["lockhouse"]
        arguments = [*entry["args"], "--answer", "structured"]
        command = StdioServerParameters(command=entry["command"], args=arguments, env=self.environment, cwd=self.home)
        faults = {}
        try:
            async with Client(stdio_client(command, errlog=said), mode="auto", read_timeout_seconds=TIMEOUT_SECONDS) as client:
                for server in SERVERS:
                    faults[server.name] = await self.use(client, n, server.name, server.program, server.expected(n))
                faults["control"] = await self.use(client, n, "duckdb", CONTROL, [True, True])
        finally:
            self.end_engine(entry["command"])
        if (self.work / "outside.csv").exists():
            faults["control"].append("outside.csv was written")
        return faults

    async def use(self, client: Client, n: int, name: str, program: str, expected: Any) -> list[str]:
        code = f"from mcp_tools import {name}\n{self.filled(program, n)}"
        answer = parse_answer(await client.call_tool("run_code", {"language": "python", "code": code}))
        if answer["status"] != "ok":
            return [f"{answer['status']}: {json.dumps(answer.get('error'))}"]
        expected = json.loads(self.filled(json.dumps(expected), n))
        return [] if answer["value"] == expected else [f"{json.dumps(answer['value'])}, not {json.dumps(expected)}"]

    def end_engine(self, lockhouse: str):
        """Ends the engine and its servers. Otherwise they would serve the next start, which would then start nothing."""
        engines = [engine["pid"] for engine in json.loads(self.run(lockhouse, "status", "--json"))]
        for engine in engines:
            os.kill(engine, signal.SIGTERM)
        until = time.monotonic() + LEAVE_SECONDS_MAX
        while left := [*processes.of_servers(self.home), *(engine for engine in engines if Path(f"/proc/{engine}").exists())]:
            if time.monotonic() > until:
                raise RuntimeError(f"still there: {[processes.command(process) for process in left]}")
            time.sleep(0.05)


def show(bench: Bench, starts: list[dict[str, list[str]]]) -> int:
    """Prints the table, and returns the number of rows with a fault."""
    sandboxes, failed = bench.sandboxes(), 0
    print(ROW.format("server", "package", *(f"start {n}" for n in STARTS), "sandbox"))
    rows = {server.name: server.package.pin() for server in SERVERS}
    for name, package in (rows | {"control": "duckdb is refused files that it was not granted"}).items():
        sandbox = sandboxes["duckdb" if name == "control" else name]
        cells = ["FAIL" if faults[name] else "pass" for faults in starts]
        print(ROW.format(name, package, *cells, "default" if sandbox == PROFILE else f"FAIL: {sandbox}"))
        for n, faults in zip(STARTS, starts, strict=True):
            for fault in faults[name]:
                print(f"       start {n}: {fault[:1000]}")
        failed += "FAIL" in cells or sandbox != PROFILE
    return failed


def main() -> int:
    lockhouse, begun = str(Path(sys.argv[1]).resolve()), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lockhouse-restarts-") as home, api.serving() as address:
        bench = Bench(Path(home), address)
        bench.write_files()
        shown = bench.run(lockhouse, "setup", "--yes")
        if "--without-sandbox" in sys.argv[2:]:
            bench.remove_sandbox()
        with open(f"{home}/said", "w+") as said:
            starts = [asyncio.run(bench.start(n, said)) for n in STARTS]
        failed = show(bench, starts)
        if failed:
            log = bench.home / ".local/state/lockhouse/engine.log"
            refused = [line for line in log.read_text().splitlines() if " WARN " in line or " ERROR " in line]
            print(f"\nlockhouse setup:\n{shown}\nwarnings of the engine:", *refused[-LOG_LINES:], sep="\n")
    print(f"{len(SERVERS)} servers, {len(STARTS)} starts, {failed} rows with faults, {time.monotonic() - begun:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
