"""The gateways under test, each with all environments behind it: Lockhouse, and FastMCP's CodeMode."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import codemode_form
import task_environments
from mcp_client import Client

HERE = Path(__file__).parent
MISSING = "(no value)"


@dataclass
class Answer:
    """What a program gave: an error, or a value and the texts in which printed lines are."""

    error: str | None
    value: object
    texts: list[str]
    shown: str


class Gateway:
    """A gateway in front of the servers of one variant. `place` has the files of the environments."""

    languages: tuple[str, ...]
    search_tool: str

    def __init__(self, variant: str, place: Path):
        self.place, self.runs = place, 0
        place.mkdir()
        self._count_run()
        arguments = [variant, str(place)]
        servers = {
            server: {
                "command": sys.executable,
                "args": ["-B", str(HERE / "server.py"), server, *arguments],
                "env": {"PYTHONHASHSEED": "0"},
            }
            for server in task_environments.SERVERS
        }
        (place / "servers.json").write_text(json.dumps({"mcpServers": servers}))

    def _count_run(self):
        self.runs += 1
        (self.place / "run").write_text(str(self.runs))

    def run(self, task, language: str) -> Answer:
        self._count_run()
        return self._run(task, language)

    def states(self, initial: dict) -> dict:
        """Returns the states of all environments after the last run."""
        states = dict(initial)
        for server in initial:
            path = self.place / f"{server}.json"
            written = json.loads(path.read_text()) if path.exists() else {"run": None}
            if written["run"] == str(self.runs):
                states[server] = written["state"]
        return states

    def definitions(self) -> str:
        tools = self.client.request("tools/list", {})["tools"]
        shown = [{key: tool[key] for key in ("name", "description", "inputSchema") if key in tool} for tool in tools]
        return compact(shown) + self.client.initialized.get("instructions", "")

    def search(self, task, language: str) -> str:
        """Returns the texts of one search for the task's tools, and of its answer."""
        return self._asked(self.search_tool, self.search_arguments(task.query, language))

    def schemas(self, task) -> str:
        """Returns the texts of a request for the parameters of the task's tools, if searches do not show them."""
        return ""

    def _asked(self, tool: str, arguments: dict) -> str:
        return compact({"name": tool, "arguments": arguments}) + shown(self.client.call(tool, arguments))

    def close(self):
        self.client.close()


class Lockhouse(Gateway):
    languages = ("python", "typescript")
    search_tool = "search_tools"

    def __init__(self, variant: str, place: Path, binary: Path):
        super().__init__(variant, place)
        policy = "version = 1\n" + "".join(f'[servers.{server}]\nallow = ["*"]\n' for server in task_environments.SERVERS)
        (place / "policy.toml").write_text(policy)
        (place / "config.toml").write_text("")
        files = ["--servers", "servers.json", "--policy", "policy.toml", "--config", "config.toml"]
        self.client = Client([str(binary), "serve", *files], place)
        for _ in range(120):
            if "unavailable" not in shown(self.client.call("search_tools", {"query": "nothing of that kind"})):
                break
            time.sleep(0.5)

    def search_arguments(self, query: str, language: str) -> dict:
        return {"query": query, "language": language}

    def _run(self, task, language: str) -> Answer:
        result = self.client.call("run_code", {"language": language, "code": task.program(language)})
        text, structured = shown(result), result.get("structuredContent")
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        if result.get("isError") or (structured or {}).get("status", "ok") != "ok":
            error = (structured or {}).get("error")
            return Answer(f"{error['type']}: {error['message']}" if error else text, MISSING, [], text)
        if structured is not None:
            return Answer(None, structured.get("value", MISSING), [structured.get("stdout", ""), *texts], text)
        # The first text block is the value as JSON and nothing else; a sentence there is not a value.
        try:
            return Answer(None, json.loads(texts[0]), texts, text)
        except (IndexError, ValueError):
            return Answer(None, MISSING, texts, text)


class FastMcp(Gateway):
    languages = ("python",)
    search_tool = "search"

    def __init__(self, variant: str, place: Path):
        super().__init__(variant, place)
        self.client = Client([sys.executable, "-B", str(HERE / "codemode.py"), "servers.json"], place)
        self.parameters = {}
        for server in task_environments.SERVERS:
            for tool in task_environments.environment(server).tools():
                schema = tool["inputSchema"]
                required = schema.get("required", [])
                names = [*required, *(name for name in schema.get("properties", {}) if name not in required)]
                self.parameters[server, tool["name"]] = names

    def search_arguments(self, query: str, language: str) -> dict:
        return {"query": query}

    def schemas(self, task) -> str:
        return self._asked("get_schema", {"tools": codemode_form.used_tools(task.program("python"))})

    def _run(self, task, language: str) -> Answer:
        code = codemode_form.convert(task.program(language), self.parameters, task.printed)
        result = self.client.call("execute", {"code": code})
        text = shown(result)
        if result.get("isError"):
            return Answer(text, MISSING, [], text)
        # CodeMode answers with a string, or with any other value as JSON.
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        return Answer(None, value, [text], text)


def shown(result: dict) -> str:
    """The text that a model reads of a result."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def compact(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
