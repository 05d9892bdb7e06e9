"""The tasks: two programs each, and what they must return or print, and do.

A module of `expected` has a function for each task. The function computes the result, and makes the same changes, with direct
calls of the environments; it does not know the programs or a gateway. A program succeeds if its value (or what it printed) and
the final states of all environments are the same.
"""

import importlib
import json
from dataclasses import dataclass
from pathlib import Path

import task_environments

HERE = Path(__file__).parent
GROUPS = (*task_environments.SERVERS, "joins")
ENDINGS = {"python": "py", "typescript": "ts"}
_functions = []


def task(query: str, printed: bool = False):
    """Registers a function as a task. `query` is what a model would search for; `printed` means that the function returns
    the lines that the programs print."""

    def register(function):
        _functions.append((function, query, printed))
        return function

    return register


@dataclass
class Task:
    name: str
    query: str
    printed: bool
    value: object
    states: dict
    changes: bool

    def program(self, language: str) -> str:
        return (HERE / "programs" / f"{self.name}.{ENDINGS[language]}").read_text()


class Tools:
    """Direct calls: `t.SERVER.TOOL(NAME=VALUE)` calls a tool, and `t.environment(SERVER)` is the package's own object."""

    def __init__(self):
        self.environments = {}

    def _get(self, server: str):
        if server not in self.environments:
            self.environments[server] = task_environments.environment(server)
        return self.environments[server]

    def environment(self, server: str):
        environment = self._get(server)
        return environment.environment if server in task_environments.SUITES else environment.instance

    def __getattr__(self, server: str):
        return _Calls(self._get(server))

    def states(self) -> dict:
        return {server: environment.state() for server, environment in self.environments.items()}


class _Calls:
    def __init__(self, environment):
        self.environment = environment

    def __getattr__(self, tool: str):
        return lambda **arguments: self.environment.call(tool, arguments)


def untouched() -> dict:
    return {server: task_environments.environment(server).state() for server in task_environments.SERVERS}


def load(only: list[str] | None = None) -> list[Task]:
    """Returns the tasks whose names contain one of the given texts; all without texts."""
    for group in GROUPS:
        importlib.import_module(f"expected.{group}")
    initial, found = untouched(), []
    for function, query, printed in _functions:
        name = f"{function.__module__.removeprefix('expected.')}/{function.__name__}"
        if only and not any(part in name for part in only):
            continue
        tools = Tools()
        value = json.loads(json.dumps(task_environments.plain(function(tools))))
        states = {**initial, **tools.states()}
        found.append(Task(name, query, printed, value, states, states != initial))
    return found
