"""Runs tasks through `lockhouse serve` with a recorder before each server, and prints the context of a model with Lockhouse
and with direct tools, as JSON for `bench-tokens` to count. Usage: record_workflows.py LOCKHOUSE"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from installed import HERE, INSTALLED
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from session import own_environment, parse_answer
from world import World

from check_cases import LANGUAGES, program
from cases import CASES

ROOT = HERE.parent.parent
RECORDER = HERE.parent / "servers/recording.py"
DEMO = ROOT / "supervisor/src/cli/demo"
# Demo programs, each with the search query that finds its tools.
DEMOS = {"late_orders": "list orders, customers and tickets of the shop"}
TASKS = {
    "files": "search files and read text",
    "history": "git log and show a commit",
    "graph": "create entities and relations, read the graph",
    "chain": "read a file, show a git commit, convert time, create entities",
}


def recorded(entry: dict, file: Path) -> dict:
    words = [str(RECORDER), str(file), entry["command"], *entry.get("args", [])]
    return {**entry, "command": sys.executable, "args": words}


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def texts(result: dict) -> str:
    """Returns the text of a result that an AI client passes to its model."""
    parts = [part["text"] for part in result.get("content", []) if part.get("type") == "text"]
    return "\n".join(parts) if parts else compact(result.get("structuredContent"))


def to_model_definition(tool: dict) -> dict:
    """Returns the parts of a tool definition that an AI client passes to its model: no annotations and no output schema."""
    return {name: tool[name] for name in ("name", "description", "inputSchema") if name in tool}


class Tape:
    """The recorded messages between Lockhouse and one server."""

    def __init__(self, file: Path):
        self.file, self.read = file, 0

    def messages(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def definitions(self) -> list:
        asked = {m["message"]["id"] for m in self.messages() if m["message"].get("method") == "tools/list"}
        answers = [m["message"] for m in self.messages() if m["to"] == "client" and m["message"].get("id") in asked]
        pages = [answer["result"]["tools"] for answer in answers if "result" in answer]
        return list({tool["name"]: to_model_definition(tool) for page in pages for tool in page}.values())

    def new_calls(self) -> list:
        """Returns the calls since the last call of this method."""
        fresh, self.read = self.messages()[self.read :], len(self.messages())
        replies = {m["message"].get("id"): m["message"] for m in fresh if m["to"] == "client"}
        calls = []
        for message in (m["message"] for m in fresh if m["to"] == "server"):
            if message.get("method") == "tools/call":
                asked, result = message["params"], replies[message["id"]].get("result", {})
                called = {"name": asked["name"], "arguments": asked.get("arguments", {})}
                calls.append({"call": compact(called), "result": texts(result)})
        return calls


async def record(client: Client, name: str, query: str, language: str, code: str, tapes: dict) -> dict:
    for tape in tapes.values():
        tape.new_calls()
    search = {"query": query, "language": language}
    found = await client.call_tool("search_tools", search)
    asked = {"language": language, "code": code}
    result = await client.call_tool("run_code", asked)
    answer = parse_answer(result)
    if answer["status"] != "ok":
        raise RuntimeError(f"{name} in {language}: {json.dumps(answer)[:2000]}")
    calls = {server: tape.new_calls() for server, tape in tapes.items()}
    used = {server: made for server, made in calls.items() if made}
    return {
        "workflow": name,
        "language": language,
        "servers": sorted(used),
        "direct": {
            "definitions": [compact(tapes[server].definitions()) for server in used],
            "calls": [call for made in used.values() for call in made],
        },
        "ours": {
            "definitions": compact([to_model_definition(t.model_dump(by_alias=True)) for t in (await client.list_tools()).tools]),
            "search": [compact({"name": "search_tools", "arguments": search}), found.content[0].text],
            "code": compact({"name": "run_code", "arguments": asked}),
            "answer": result.content[0].text,
        },
    }


async def connected(client: Client):
    for _ in range(120):
        if "unavailable" not in parse_answer(await client.call_tool("search_tools", {"query": "nothing of that kind"})):
            return
        await asyncio.sleep(0.5)


async def session(lockhouse: Path, place: Path, entries: dict, policy: Path, tasks, said) -> list:
    tapes = {name: Tape(place / f"{name}.tape") for name in entries}
    servers = {name: recorded(entry, tapes[name].file) for name, entry in entries.items()}
    (place / "recorded.json").write_text(json.dumps({"mcpServers": servers}))
    arguments = ["serve", "--answer", "structured", "--servers", str(place / "recorded.json"), "--policy", str(policy)]
    parameters = StdioServerParameters(command=str(lockhouse), args=arguments, env=own_environment(place))
    rows = []
    async with Client(stdio_client(parameters, errlog=said), mode="auto", read_timeout_seconds=300) as client:
        await connected(client)
        for name, query, language, code in tasks:
            rows.append(await record(client, name, query, language, code, tapes))
    return rows


async def record_all(lockhouse: Path, place: Path, said) -> list:
    demo = place / "demo"
    demo.mkdir()
    shop = {"shop": {"command": str(lockhouse), "args": ["demo-server"]}}
    tasks = [
        (f"demo: {name}", query, language, (DEMO / f"{name}.{ending}").read_text())
        for name, query in DEMOS.items()
        for language, ending in LANGUAGES.items()
    ]
    rows = await session(lockhouse, demo, shop, DEMO / "policy.toml", tasks, said)
    if not (INSTALLED / "venv").exists():
        print("the servers of tests/upstreams are not installed: their tasks are left out", file=sys.stderr)
        return rows
    for language in LANGUAGES:
        # Each language has its own directory, so runs do not see each other's files.
        around = place / language
        around.mkdir()
        world = World(around)
        entries = json.loads(world.servers_file("direct").read_text())["mcpServers"]
        policy = around / "all.toml"
        policy.write_text("version = 1\n" + "".join(f'[servers.{name}]\nallow = ["*"]\n' for name in entries))
        case = lambda name: next(case for case in CASES if case.name == name)
        tasks = [(name, query, language, program(case(name), language, world)) for name, query in TASKS.items()]
        rows += await session(lockhouse, around, entries, policy, tasks, said)
    return rows


def main():
    lockhouse = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="lockhouse-workflows-") as place, open(os.devnull, "w") as said:
        print(json.dumps(asyncio.run(record_all(lockhouse, Path(place), said))))


if __name__ == "__main__":
    main()
