"""Tests `lockhouse serve` with the official Python client and real upstream servers: a program per case in both languages,
over both protocol eras. Usage: check_cases.py LOCKHOUSE [CASE | LANGUAGE | ERA]..."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from installed import HERE
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from session import own_environment, parse_answer
from world import SHOWN, ZONES, World

from cases import CASES, Case, Run

LANGUAGES = {"python": "py", "typescript": "ts"}
# The client's mode, and the protocol version that must be negotiated.
ERAS = {"initialize": ("legacy", "2025-11-25"), "discover": ("auto", "2026-07-28")}
ROW = "{:<10} {:<11} {:<10} {:>5} {:>7} {:>10} {:>8}  {}"


class Table:
    def __init__(self):
        self.passed = self.failed = 0
        print(ROW.format("case", "language", "era", "calls", "ms", "kept out", "answer", ""))

    def add(self, name: str, language: str, era: str, calls, ms: float, kept_out, answer, faults: list[str]):
        verdict = "FAIL" if faults else "pass"
        print(ROW.format(name, language, era, calls, f"{ms:.0f}", kept_out, answer, verdict), flush=True)
        for fault in faults:
            print(f"       {fault}", flush=True)
        self.failed += bool(faults)
        self.passed += not faults


def program(case: Case, language: str, world: World) -> str:
    """Returns the source of a program with its placeholders for paths replaced."""
    text = (HERE / "cases" / f"{case.name}.{LANGUAGES[language]}").read_text()
    places = {
        "@FILES@": str(world.files),
        "@REPOSITORY@": str(world.repository),
        "@PREFIX@": f"{language}-",
        "@SHOWN@": str(SHOWN),
        "@ZONES@": json.dumps(list(ZONES)),
    }
    for place, meant in places.items():
        text = text.replace(place, meant)
    return text


async def ask_directly(world: World) -> dict:
    """Returns the results of server-everything for the same calls without Lockhouse in between."""
    servers = json.loads(world.servers_file("direct").read_text())["mcpServers"]
    server = StdioServerParameters(command=servers["everything"]["command"], args=servers["everything"]["args"])
    # The server logs to stderr.
    with open(os.devnull, "w") as quiet:
        async with Client(stdio_client(server, errlog=quiet), mode="legacy", read_timeout_seconds=30) as client:
            before, image, _ = (await client.call_tool("get-tiny-image", {})).content
            cities = ["New York", "Chicago", "Los Angeles"]
            weather = [await client.call_tool("get-structured-content", {"location": city}) for city in cities]
            _, *links = (await client.call_tool("get-resource-links", {"count": 4})).content
    data = base64.b64decode(image.data)
    return {
        "image": [image.mime_type, len(data), sum(data), before.text],
        "structured": [result.structured_content for result in weather],
        "links": [[link.type, str(link.uri), link.mime_type] for link in links],
    }


async def every_server(client: Client):
    """Waits until a search reports no missing server."""
    for _ in range(60):
        if "unavailable" not in (found := parse_answer(await client.call_tool("search_tools", {"query": "file"}))):
            return
        await asyncio.sleep(0.5)
    raise RuntimeError(f"not available: {found['unavailable']}")


async def check_front(client: Client, era: str, table: Table):
    """Checks the tools and the search results, which a model sees before it writes code."""
    started, faults = time.monotonic(), []
    if client.protocol_version != ERAS[era][1]:
        faults.append(f"speaks {client.protocol_version}, not {ERAS[era][1]}")
    names = sorted(tool.name for tool in (await client.list_tools()).tools)
    if names != ["get_result", "run_code", "search_tools"]:
        faults.append(f"offers {names}")
    await every_server(client)
    for query, first in [("commit logs", "git_log"), ("time zones", "convert_time"), ("read text", "read_text_file")]:
        found = [tool["tool"] for tool in parse_answer(await client.call_tool("search_tools", {"query": query}))["tools"]]
        if first not in found[:3]:
            faults.append(f"{query!r} finds {found}, and {first} is not among the first three")
    for query in ["write file", "commit", "delete entities"]:
        found = {tool["tool"] for tool in parse_answer(await client.call_tool("search_tools", {"query": query}))["tools"]}
        if shown := found & {"write_file", "edit_file", "git_commit", "delete_entities"}:
            faults.append(f"{query!r} shows what is denied: {sorted(shown)}")
    table.add("front", "-", era, "-", (time.monotonic() - started) * 1000, "-", "-", faults)


async def check_case(client: Client, case: Case, language: str, era: str, world: World, direct: dict, table: Table):
    source, started = program(case, language, world), time.monotonic()
    answer = {}
    try:
        result = await client.call_tool("run_code", {"language": language, "code": source})
        ms = (time.monotonic() - started) * 1000
        answer = parse_answer(result)
        faults = case.faults(Run(world, era, language, answer, direct, source))
        if result.is_error != (case.status != "ok"):
            faults.append(f"isError is {result.is_error}")
    except Exception as error:  # the failure of one case does not stop the others
        ms, faults = (time.monotonic() - started) * 1000, [f"{type(error).__name__}: {error}"]
    stats = answer.get("stats", {})
    size = len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode())
    calls, kept_out = stats.get("tool_calls", "-"), stats.get("bytes_kept_out", "-")
    table.add(case.name, language, era, calls, ms, kept_out, size, faults)


async def check(lockhouse: Path, place: Path, only: set[str], table: Table, said):
    world = World(place)
    direct = await ask_directly(world)
    environment = own_environment(place)

    def command(*arguments: str):
        files = ["--servers", str(world.servers_file("policy")), "--policy", str(world.policy)]
        words = [str(lockhouse), *arguments, *files]
        done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    world.write_policy(command)
    chosen = lambda names: [name for name in names if name in only] or list(names)
    for era in chosen(ERAS):
        files = ["--servers", str(world.servers_file(era)), "--policy", str(world.policy)]
        server = StdioServerParameters(command=str(lockhouse), args=["serve", "--answer", "structured", *files], env=environment)
        async with Client(stdio_client(server, errlog=said), mode=ERAS[era][0], read_timeout_seconds=120) as client:
            await check_front(client, era, table)
            for name in chosen([case.name for case in CASES]):
                case = next(case for case in CASES if case.name == name)
                for language in chosen(LANGUAGES):
                    await check_case(client, case, language, era, world, direct, table)


def main() -> int:
    lockhouse, only = Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    known = {case.name for case in CASES} | set(LANGUAGES) | set(ERAS)
    if unknown := only - known:
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    table = Table()
    with tempfile.TemporaryDirectory(prefix="lockhouse-upstreams-") as place:
        with open(f"{place}/said", "w+") as said:
            asyncio.run(check(lockhouse, Path(place), only, table, said))
            if table.failed:
                said.seek(0)
                print(f"\nlast words of lockhouse serve:\n{''.join(said.readlines()[-15:])}")
    print(f"{table.passed} passed, {table.failed} failed")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
