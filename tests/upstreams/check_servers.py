"""Tests every server of servers.py with one `lockhouse serve` and the official Python client: each is started, listed and
called from a program, and no process is left at the end. Usage: check_servers.py LOCKHOUSE [--subset] [NAME]..."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import api
import processes
import traits
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from server import Server, Trait
from session import own_environment, parse_answer
from settings import PATIENCE_SECONDS, Settings

from servers import OTHERS, SUBSET

ROW = "{:<10} {:<58} {:<20} {:>5} {:>7} {:>6} {:<8} {:<5} {}"
# Maximum time from the end of the session until the last process of a server has exited.
LEAVE_SECONDS_MAX = 10
# Number of servers that are started concurrently without Lockhouse.
PROBES = 2


@dataclass
class Row:
    server: Server
    faults: list[str] = field(default_factory=list)
    era: str = "-"
    tools: int | str = "-"
    # Time from the start of `lockhouse serve` until the server was connected or had failed.
    ready_s: float | None = None
    ms: float | None = None
    called: str = "-"

    def show(self):
        server = self.server
        ready, ms = (f"{self.ready_s:.1f}" if self.ready_s else "-"), (f"{self.ms:.0f}" if self.ms else "-")
        shows = ", ".join(sorted(trait.value for trait in server.traits))
        verdict = "FAIL" if self.faults else "pass"
        cells = [server.name, server.package.pin(), self.era, self.tools, ready, ms, self.called, verdict, shows]
        print(ROW.format(*cells).rstrip())
        for fault in self.faults:
            print(f"       {fault}", flush=True)


PROGRAM = """
from mcp_tools import ToolError, {name}
tools, answer = len({name}.list_tools()), None
try:
    answer = {expression}
    outcome = "answers"
except ToolError as error:
    outcome = "refuses" if error.code in ("tool_failed", "invalid_arguments") else error.code
    answer = error.message
[tools, outcome, answer]
"""


class Session:
    """A session with `lockhouse serve`, which records the results for each server."""

    def __init__(self, client: Client, rows: dict[str, Row], settings: Settings):
        self.client, self.rows, self.settings = client, rows, settings

    async def run(self, code: str):
        answer = parse_answer(await self.client.call_tool("run_code", {"language": "python", "code": code}))
        if answer["status"] != "ok":
            raise RuntimeError(answer["error"]["message"])
        return answer["value"]

    async def wait_until_settled(self, begun: float):
        """Waits until each server is connected, or has failed as expected. The time limit applies to all servers together."""
        pending = dict(self.rows)
        seconds = 0.0
        while pending and seconds < PATIENCE_SECONDS:
            states = await self.run("from mcp_tools import list_servers\nlist_servers()")
            seconds = time.monotonic() - begun
            for status in states:
                row = pending.get(status["name"])
                if row and status["state"] in final_states(row.server):
                    row.ready_s = seconds
                    del pending[status["name"]]
            await asyncio.sleep(0.2)

    async def use(self, row: Row):
        server, begun = row.server, time.monotonic()
        expression = self.settings.filled(server.call.expression) if server.call else "None"
        try:
            row.tools, outcome, answer = await self.run(PROGRAM.format(name=server.name, expression=expression))
        except Exception as error:  # the failure of one server does not stop the others
            row.faults += unusable(row, str(error))
            return
        row.ms = (time.monotonic() - begun) * 1000
        if row.tools != server.tools:
            row.faults.append(f"{row.tools} tools, not {server.tools}")
        if server.call:
            row.called = outcome
            expected = "refuses" if server.call.fails else "answers"
            if outcome != expected or not server.call.is_met_by(answer):
                row.faults.append(f"{server.call.expression} {outcome}: {json.dumps(answer)[:500]}")


def final_states(server: Server) -> set[str]:
    """Returns the states in which waiting ends. A server that fails unexpectedly is restarted, so `failed` is not final."""
    return {"connected", "failed"} if Trait.HANGS in server.traits else {"connected"}


def unusable(row: Row, reason_given: str) -> list[str]:
    """Checks the error of an unusable server: one that hangs must time out with that reason; all others must not fail."""
    if Trait.HANGS not in row.server.traits:
        return [reason_given]
    reason = "it did not finish its start within "
    faults = [] if row.ready_s else ["it was not given up while the others started"]
    return faults if reason in reason_given else [*faults, f"{reason!r} is not in {reason_given!r}"]


def eras(lockhouse: Path, settings: Settings, rows: dict[str, Row]):
    """Records the protocol eras that `server list` reports, in versions that have the command."""
    environment = {**os.environ, **own_environment(settings.place)}

    def run(*words: str) -> subprocess.CompletedProcess:
        command = [str(lockhouse), "server", "list", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    if run("--help").returncode != 0:
        return
    for report in json.loads(run("--json", *settings.options()).stdout):
        row = rows.get(report["name"])
        if row is None or Trait.HANGS in row.server.traits:
            continue
        row.era = report["era"] + (" fell back" if report["fell_back"] else "")
        fell_back = Trait.CRASHES_ON_DISCOVER in row.server.traits
        if (report["era"], report["fell_back"]) != (row.server.era, fell_back):
            row.faults.append(f"era {row.era}, not {row.server.era}{' fell back' if fell_back else ''}")


async def probe(rows: list[Row], settings: Settings):
    """Checks that each server still has the traits for which it is in the table."""
    free = asyncio.Semaphore(PROBES)

    async def one(row: Row):
        async with free:
            row.faults += await traits.missing_traits(row.server, settings.entry(row.server), str(settings.place))

    await asyncio.gather(*map(one, rows))


async def remaining_processes(place: Path) -> list[str]:
    """Returns processes of servers that are still running after the shutdown."""
    until = time.monotonic() + LEAVE_SECONDS_MAX
    while (found := processes.of_servers(place)) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return [f"still there: {process} {processes.command(process)}" for process in found]


async def check(lockhouse: Path, place: Path, servers: list[Server], address: str, said) -> list[str]:
    """Prints a row for each server. Returns faults that concern no single server."""
    settings = Settings(servers, place, address, patient=len(servers) > len(SUBSET))
    rows = {server.name: Row(server) for server in servers}
    await probe(list(rows.values()), settings)
    environment, begun = own_environment(place), time.monotonic()
    command = StdioServerParameters(command=str(lockhouse), args=["serve", "--answer", "structured", *settings.options()], env=environment)
    async with Client(stdio_client(command, errlog=said), mode="auto", read_timeout_seconds=120) as client:
        session = Session(client, rows, settings)
        await session.wait_until_settled(begun)
        for row in rows.values():
            await session.use(row)
        running = processes.of_servers(place)
        megabytes = processes.resident_bytes(running) / 1e6
    ended = time.monotonic()
    faults = await remaining_processes(place)
    seconds = time.monotonic() - ended
    connected = sum(Trait.HANGS not in server.traits for server in servers)
    if len(running) < connected:
        faults.append(f"only {len(running)} processes were seen of {connected} servers")
    eras(lockhouse, settings, rows)
    print(ROW.format("server", "package", "era", "tools", "ready s", "ms", "call", "", "shows"))
    for row in rows.values():
        row.show()
    print(
        f"{len(running)} processes of servers, {megabytes:.0f} MB resident; {len(faults)} left {seconds:.1f} s after the end"
    )
    return faults + [f"{name} failed" for name, row in rows.items() if row.faults]


def main() -> int:
    lockhouse, words = Path(sys.argv[1]).resolve(), sys.argv[2:]
    servers = SUBSET if "--subset" in words else SUBSET + OTHERS
    names = [word for word in words if word != "--subset"]
    if unknown := set(names) - {server.name for server in servers}:
        there = ", ".join(sorted(server.name for server in servers))
        print(f"unknown: {', '.join(sorted(unknown))}; there are {there}", file=sys.stderr)
        return 2
    chosen = [server for server in servers if not names or server.name in names]
    with tempfile.TemporaryDirectory(prefix="lockhouse-servers-") as place, api.serving() as address:
        with open(f"{place}/said", "w+") as said:
            faults = asyncio.run(check(lockhouse, Path(place), chosen, address, said))
            if faults:
                said.seek(0)
                print(f"\nlast words of lockhouse serve:\n{''.join(said.readlines()[-15:])}")
    for fault in faults:
        print(f"       {fault}")
    print(f"{len(chosen)} servers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
