"""The environments behind the servers of the evaluation: suites of AgentDojo, and classes of the Berkeley Function Calling
Leaderboard. Each has tools, calls and a state. The MCP server and the expected results both use them."""

import copy
import datetime
import functools
import importlib.util
import json
import sys
import types
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "bfcl"))
import environments as bfcl  # tests/bfcl/environments.py

# Server names and the leaderboard's classes, with the task whose initial state the environment has.
BFCL = {
    "files": ("GorillaFileSystem", "multi_turn_base_18"),
    "twitter": ("TwitterAPI", "multi_turn_base_78"),
    "tickets": ("TicketAPI", None),
    "trading": ("TradingBot", "multi_turn_base_119"),
    "messages": ("MessageAPI", None),
    "vehicle": ("VehicleControlAPI", "multi_turn_base_99"),
}
# Tools whose results do not have the documented fields, or not of the documented types.
MISDESCRIBED = {"send_message", "check_tire_pressure", "displayCarStatus", "get_order_history", "adjustClimateControl"}
SUITES = ("workspace", "travel", "banking", "slack")
SERVERS = (*SUITES, *BFCL)
NOW = datetime.datetime(2024, 5, 15, 8, 0)


class _Clock(datetime.datetime):
    """The clock of the suites' tools stands still, so that results and states are the same in each run."""

    @classmethod
    def now(cls, tz=None):
        return NOW


class Suite:
    """One AgentDojo suite in the state of its environment.yaml, with the default text for each injection."""

    def __init__(self, name: str):
        kind, functions = _suite(name)
        self.functions = {function.name: function for function in functions}
        self.environment = kind.model_validate(copy.deepcopy(_initial_state(name)))

    def tools(self) -> list[dict]:
        return [
            {
                "name": name,
                "description": function.description,
                "inputSchema": function.parameters.model_json_schema(),
                "outputSchema": _output_schema(function.return_type),
            }
            for name, function in self.functions.items()
        ]

    def call(self, name: str, arguments: dict):
        """Returns what the function returns; models are not converted. Raises what the function raises."""
        function = self.functions[name]
        given = function.parameters.model_validate(arguments).model_dump()
        parts = {part: depends.extract_dep_from_env(self.environment) for part, depends in function.dependencies.items()}
        return function(**given, **parts)

    def state(self) -> dict:
        state = self.environment.model_dump(mode="json")
        if "web" in state:
            del state["web"]["web_requests"]  # Lists the pages that were read.
        return state


class Leaderboard:
    """One class of the leaderboard."""

    def __init__(self, name: str):
        self.class_name, task = BFCL[name]
        rows = bfcl.lines("BFCL_v4_multi_turn_base.json") if task else []
        chosen = next((row for row in rows if row["id"] == task), {"id": "", "initial_config": {}})
        self.instance = bfcl.environment(self.class_name, chosen)

    def tools(self) -> list[dict]:
        server = bfcl.SERVERS[self.class_name]
        rows = {row["name"]: row for row in bfcl.lines(f"multi_turn_func_doc/{server}.json")}
        return [{**tool, "outputSchema": self._schema(rows[tool["name"]])} for tool in bfcl.tools(server)]

    def _schema(self, row: dict) -> dict:
        """The fields of the document; the function's own type if the result is not always an object."""
        returned = getattr(type(self.instance), row["name"]).__annotations__.get("return")
        if returned is not None and not str(returned).startswith("typing.Dict"):
            return _output_schema(returned)
        described = {} if row["name"] in MISDESCRIBED else bfcl._schema(row["response"])
        return {"type": "object", "properties": described.get("properties", {})}

    def call(self, name: str, arguments: dict):
        return getattr(self.instance, name)(**arguments)

    def state(self) -> dict:
        return bfcl.state(self.instance)


def environment(server: str) -> Suite | Leaderboard:
    return Suite(server) if server in SUITES else Leaderboard(server)


def plain(value):
    """Converts a result to JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return bfcl.plain(value)


def _output_schema(kind) -> dict:
    """The schema of a returned type. A type that is not an object is wrapped, as the Python SDK of MCP does it."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(kind).json_schema(mode="serialization") if kind is not None else {}
    if schema.get("type") == "object":
        return schema
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return {**definitions, **wrapped, "x-fastmcp-wrap-result": True}


@functools.cache
def _initial_state(name: str) -> dict:
    from agentdojo.yaml_loader import ImportLoader
    import yaml

    data = Path(str(files("agentdojo") / "data" / "suites" / name))
    with open(data / "environment.yaml") as file:
        text = yaml.dump(yaml.load(file, ImportLoader), default_flow_style=False)
    vectors = yaml.safe_load((data / "injection_vectors.yaml").read_text())
    return yaml.safe_load(text.format(**{vector: entry["default"] for vector, entry in vectors.items()}))


@functools.cache
def _suite(name: str) -> tuple:
    """Returns the type of a suite's environment, and its functions. The module that lists them is loaded alone: its package
    also loads the benchmark's tasks, and with them the libraries of all providers of models."""
    found = {}
    suites, deepdiff = types.ModuleType("agentdojo.task_suite.task_suite"), types.ModuleType("deepdiff.diff")
    suites.TaskSuite = _Recorder(found)
    deepdiff.DeepDiff = object
    stand_ins = {"deepdiff": types.ModuleType("deepdiff"), "deepdiff.diff": deepdiff}
    stand_ins |= {"agentdojo.task_suite": types.ModuleType("agentdojo.task_suite"), suites.__name__: suites}
    sys.modules.update(stand_ins)
    try:
        path = Path(str(files("agentdojo") / "default_suites" / "v1" / name / "task_suite.py"))
        spec = importlib.util.spec_from_file_location(f"eval_suite_{name}", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    finally:
        for module in stand_ins:
            del sys.modules[module]
    for module in ("email_client", "cloud_drive_client"):
        loaded = sys.modules.get(f"agentdojo.default_suites.v1.tools.{module}")
        if loaded:
            loaded.datetime = types.SimpleNamespace(**{**vars(datetime), "datetime": _Clock})
    return found["environment"], found["functions"]


class _Recorder:
    """Stands in for the class TaskSuite, and records what the suite is made of."""

    def __init__(self, found: dict):
        self.found = found

    def __getitem__(self, _):
        return self

    def __call__(self, _, environment, functions):
        self.found.update(environment=environment, functions=functions)
