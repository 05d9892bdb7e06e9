"""Tests real servers over HTTP+SSE, the deprecated transport: server-everything, FastMCP of mcp 1.6 and its successor in mcp 2.
Each is called by a program in each language, ended during a session, and started again. Usage: check_sse.py LOCKHOUSE
[SERVER]..."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installed import HERE, INSTALLED, Npm, PyPI
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from session import own_environment, parse_answer

ROW = "{:<11} {:<50} {:<11} {:<18} {:>5} {:>6}  {}"
START_SECONDS_MAX = 60


@dataclass
class SseServer:
    name: str
    package: Npm | PyPI
    # Without the port.
    command: list[str]
    era: str
    tools: int
    # An expression in each language, and its value in both.
    python: str
    typescript: str
    value: Any

    def start(self, port: int) -> subprocess.Popen:
        command = [*self.command, str(port)] if self.command[-1].endswith(".py") else self.command
        environment = {**os.environ, "PORT": str(port)}
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)


TEXT = "Grüße, 水門 "
SUMS = "[sums.add(a=40, b=2), sums.steps(count=4), sums.text(size=3), len(sums.text(size=20_000))]"
SUMS_TS = (
    "return [await sums.add({ a: 40, b: 2 }), await sums.steps({ count: 4 }), await sums.text({ size: 3 }), "
    "[...(await sums.text({ size: 20_000 }))].length];"
)
EVERYTHING = (
    "before, image, _ = everything.get_tiny_image()\n"
    "[everything.echo(message='Grüße, 水門'), everything.get_sum(19.5, 22.5), len(image.data), image.mime_type, "
    "everything.trigger_long_running_operation(duration=1, steps=4)]"
)
EVERYTHING_TS = (
    "const [before, image] = await everything.get_tiny_image();\n"
    "return [await everything.echo({ message: 'Grüße, 水門' }), await everything.get_sum(19.5, 22.5), image.data.length, "
    "image.mimeType, await everything['trigger-long-running-operation']({ duration: 1, steps: 4 })];"
)
EVERYTHING_VALUE = [
    "Echo: Grüße, 水門",
    "The sum of 19.5 and 22.5 is 42.",
    4_033,
    "image/png",
    "Long running operation completed. Duration: 1 seconds, Steps: 4.",
]


def python_server(name: str, environment: str, era: str, total: int | str) -> SseServer:
    """`total`: what the tool `add` returns. FastMCP of mcp 1.6 makes text of numbers."""
    command = [str(INSTALLED / environment / "bin/python"), str(HERE / "sse_server.py")]
    filled = [text.replace("sums", name) for text in (SUMS, SUMS_TS)]
    value = [total, "4 steps", TEXT * 3, len(TEXT) * 20_000]
    return SseServer(name, PyPI("mcp", environment), command, era, 4, *filled, value)


SERVERS = [
    SseServer(
        "everything",
        Npm("@modelcontextprotocol/server-everything"),
        [*Npm("@modelcontextprotocol/server-everything").command(), "sse"],
        "2025-11-25",
        15,
        EVERYTHING,
        EVERYTHING_TS,
        EVERYTHING_VALUE,
    ),
    python_server("fastmcp", "venv-older", "2024-11-05", "42"),
    python_server("mcpserver", "venv", "2025-11-25", 42),
]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_listening(port: int):
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


@contextlib.contextmanager
def running(server: SseServer, port: int):
    process = server.start(port)
    try:
        wait_until_listening(port)
        yield
    finally:
        process.kill()
        process.wait()


class Check:
    def __init__(self, lockhouse: Path, place: Path):
        self.lockhouse, self.place, self.failed = lockhouse, place, 0
        self.environment = own_environment(place)

    def files(self) -> list[str]:
        return ["--config", str(self.place / "config.toml"), "--policy", str(self.place / "policy.toml")]

    def configure(self, server: SseServer, port: int):
        url = f"http://127.0.0.1:{port}/sse"
        (self.place / "config.toml").write_text(f'[servers.{server.name}]\nurl = "{url}"\ntransport = "sse"\n')
        (self.place / "policy.toml").write_text(f'version = 1\n[servers.{server.name}]\nallow = ["*"]\n')

    def row(self, server: SseServer, what: str, calls, ms: float | None, faults: list[str]):
        shown = "-" if ms is None else f"{ms:.0f}"
        verdict = "FAIL" if faults else "pass"
        print(ROW.format(server.name, server.package.pin(), server.era, what, calls, shown, verdict), flush=True)
        for fault in faults:
            print(f"       {fault}", flush=True)
        self.failed += bool(faults)

    def listed(self, server: SseServer) -> list[str]:
        command = [str(self.lockhouse), "server", "list", "--json", *self.files()]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        found = json.loads(done.stdout or "[{}]")[0]
        expected = {"transport": "sse", "state": "connected", "era": server.era, "tools": server.tools, "fell_back": False}
        return [f"{key} is {found.get(key)!r}, not {value!r}: {found}" for key, value in expected.items() if found.get(key) != value]

    async def program(self, client: Client, server: SseServer, language: str) -> tuple[dict, float]:
        code = server.python if language == "python" else server.typescript
        code = f"from mcp_tools import {server.name}\n{code}" if language == "python" else code
        begun = time.monotonic()
        result = await client.call_tool("run_code", {"language": language, "code": code})
        return parse_answer(result), (time.monotonic() - begun) * 1000

    async def runs(self, client: Client, server: SseServer, when: str):
        for language in ("python", "typescript"):
            answer, ms = await self.program(client, server, language)
            faults = []
            if answer.get("value") != server.value:
                faults = [f"answered {json.dumps(answer)[:800]}\n       expected {json.dumps(server.value)}"]
            self.row(server, f"{language}{when}", answer.get("stats", {}).get("tool_calls", "-"), ms, faults)

    async def check(self, server: SseServer, said):
        port = free_port()
        self.configure(server, port)
        arguments = ["serve", "--answer", "structured", *self.files()]
        command = StdioServerParameters(command=str(self.lockhouse), args=arguments, env=self.environment)
        with contextlib.ExitStack() as first:
            first.enter_context(running(server, port))
            self.row(server, "list", "-", None, self.listed(server))
            async with Client(stdio_client(command, errlog=said), mode="auto", read_timeout_seconds=120) as client:
                await self.runs(client, server, "")
                first.close()
                answer, ms = await self.program(client, server, "python")
                faults = [] if answer.get("error", {}).get("code") == "upstream_unavailable" else [json.dumps(answer)[:800]]
                self.row(server, "ended", "-", ms, faults)
                with running(server, port):
                    await self.wait_until_usable(client, server)
                    await self.runs(client, server, ", again")

    async def wait_until_usable(self, client: Client, server: SseServer):
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until:
            answer, _ = await self.program(client, server, "python")
            if answer["status"] == "ok":
                return
            await asyncio.sleep(0.5)


def main() -> int:
    lockhouse, only = Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    if unknown := only - {server.name for server in SERVERS}:
        there = ", ".join(server.name for server in SERVERS)
        print(f"unknown: {', '.join(sorted(unknown))}; there are {there}", file=sys.stderr)
        return 2
    print(ROW.format("server", "package", "era", "", "calls", "ms", ""))
    failed = 0
    for server in SERVERS:
        if only and server.name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="lockhouse-sse-") as place, open(f"{place}/said", "w+") as said:
            check = Check(lockhouse, Path(place))
            asyncio.run(check.check(server, said))
            if check.failed:
                said.seek(0)
                print(f"\nlast words of lockhouse serve:\n{''.join(said.readlines()[-15:])}")
            failed += check.failed
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
