"""The leaderboard's environments: their tool definitions, new instances in the initial state of a task, and the results of
calls and the states as JSON. Both the MCP server and the reference use these functions."""

import copy
import importlib
import inspect
import json
from importlib.resources import files

import bfcl_eval
from bfcl_eval.constants.executable_backend_config import (
    CLASS_FILE_PATH_MAPPING,
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
    STATELESS_CLASSES,
)

DATA = files(bfcl_eval) / "data"
# Class names by server name. The server name derives from the name of the document.
CLASSES = {
    document.removesuffix(".json"): name
    for name, document in MULTI_TURN_FUNC_DOC_FILE_MAPPING.items()
    if not name.startswith(("Memory", "WebSearch"))  # These need models and network access.
}
SERVERS = {name: server for server, name in CLASSES.items()}
# The documents use names of Python types.
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def lines(name: str) -> list[dict]:
    """Returns the rows of one of the leaderboard's data files."""
    return [json.loads(line) for line in (DATA / name).read_text().splitlines() if line.strip()]


def tools(server: str) -> list[dict]:
    """Returns the tool definitions for `tools/list`, from the leaderboard's documents of the functions."""
    return [
        {"name": row["name"], "description": row["description"], "inputSchema": _schema(row["parameters"])}
        for row in lines(f"multi_turn_func_doc/{server}.json")
    ]


def _schema(value):
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _schema(item) for key, item in value.items()}
    if isinstance(kind := schema.get("type"), str):
        schema["type"] = _TYPES.get(kind, kind)
        if schema["type"] is None:
            del schema["type"]
    return schema


def environment(class_name: str, task: dict):
    """Returns a new instance in the initial state of a task."""
    instance = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[class_name]), class_name)()
    if class_name not in STATELESS_CLASSES:
        scenario = copy.deepcopy(task["initial_config"].get(class_name, {}))
        instance._load_scenario(scenario, long_context="long_context" in task["id"])
    return instance


def methods(class_name: str) -> set[str]:
    """Returns the names of the methods that a task's actions can call."""
    kind = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[class_name]), class_name)
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def answer(value) -> dict:
    """Returns the result of a call as structured content, which MCP requires to be an object."""
    return plain(value if isinstance(value, dict) else {"result": value})


def state(instance) -> dict:
    """Returns the public attributes, which the leaderboard compares."""
    return {name: plain(value) for name, value in vars(instance).items() if not name.startswith("_")}


def plain(value):
    """Converts a value to JSON. A directory becomes its name and contents, since its reference to the parent is cyclic."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "contents"):
        return {"directory": value.name, "contents": plain(value.contents)}
    if hasattr(value, "content"):
        return {"file": value.name, "content": value.content}
    return str(value)
