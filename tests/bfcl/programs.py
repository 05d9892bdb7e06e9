"""Converts a task's gold actions to direct calls of the reference, and to programs in both languages."""

import ast
import copy
import json
from dataclasses import dataclass

import environments

CAUGHT = "Error during execution: "
# The result of a call whose arguments do not match the leaderboard's document of the function.
REFUSED = {"result": f"{CAUGHT}invalid_arguments"}


@dataclass(frozen=True)
class Action:
    """A call such as `cd(folder='document')`, with the server that has the tool."""

    server: str
    tool: str
    positional: list
    named: dict

    @staticmethod
    def parse(source: str, owners: dict[str, str]) -> "Action":
        call = ast.parse(source, mode="eval").body
        positional = [ast.literal_eval(value) for value in call.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        return Action(owners[call.func.id], call.func.id, positional, named)


def actions(task: dict) -> list[list[Action]]:
    """Returns the gold actions of each turn."""
    owners = {
        name: environments.SERVERS[involved]
        for involved in task["involved_classes"]
        for name in environments.methods(involved)
    }
    return [[Action.parse(source, owners) for source in turn] for turn in task["ground_truth"]]


def matches_schema(action: Action, schema: dict) -> bool:
    """Returns whether the types of an action's arguments match the document. A few gold actions do not match."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    declared = schema["properties"]
    named = dict(zip(declared, action.positional)) | action.named
    return all(isinstance(value, kinds[declared[name]["type"]]) for name, value in named.items())


class Reference:
    """The expected results and states, from direct calls of the environments. Calls with invalid arguments are refused, which
    the environments themselves do not do."""

    def __init__(self, task: dict, turns: list[list[Action]], schemas: dict):
        self.instances = {
            environments.SERVERS[involved]: environments.environment(involved, task)
            for involved in task["involved_classes"]
        }
        self.untouched = self.states()
        self.refused = 0
        self.answers = [[self._answer(action, schemas) for action in turn] for turn in turns]

    def states(self) -> dict:
        return {server: environments.state(instance) for server, instance in self.instances.items()}

    def _answer(self, action: Action, schemas: dict) -> dict:
        if not matches_schema(action, schemas[action.server, action.tool]):
            self.refused += 1
            return REFUSED
        action = copy.deepcopy(action)  # An environment keeps references to its arguments and mutates them.
        try:
            return environments.answer(
                getattr(self.instances[action.server], action.tool)(*action.positional, **action.named)
            )
        except Exception as error:
            return {"result": f"{CAUGHT}{error}"}


def raises(answer: dict) -> bool:
    return str(answer.get("result")).startswith(CAUGHT)


def python(turns: list[list[Action]], answers: list[list[dict]], schemas: dict) -> list[str]:
    """Returns a program part for each turn, to be run in sequence or as one program. Calls have the form of the actions.
    Errors that the reference raises are caught, and no others."""
    imports = {}
    for action in (action for turn in turns for action in turn):
        imports.setdefault(action.server, {})[action.tool] = None
    lines = ["from mcp_tools import ToolError"]
    lines += [f"from mcp_tools.{server} import {', '.join(tools)}" for server, tools in imports.items()]
    pieces = []
    for number, (turn, expected) in enumerate(zip(turns, answers)):
        lines += ["", f"answers_{number} = []"]
        for action, answer in zip(turn, expected):
            named = [f"{name}={value!r}" for name, value in action.named.items()]
            call = f"answers_{number}.append({action.tool}({', '.join([*map(repr, action.positional), *named])}))"
            if raises(answer):
                words = "error.code" if answer is REFUSED else "error.message"
                caught = f'    answers_{number}.append({{"result": f"{CAUGHT}{{{words}}}"}})'
                lines += ["try:", f"    {call}", "except ToolError as error:", caught]
            else:
                lines.append(call)
        if number == len(turns) - 1:
            lines += ["", to_list_literal(turns)]
        pieces.append("\n".join([*lines, ""]))
        lines = []
    return pieces


def typescript(turns: list[list[Action]], answers: list[list[dict]], schemas: dict) -> list[str]:
    """Returns a program part for each turn in TypeScript. Arguments are positional if the action has only positional ones,
    otherwise an object."""
    pieces = []
    for number, (turn, expected) in enumerate(zip(turns, answers)):
        lines = [f"const answers_{number}: unknown[] = [];"]
        for action, answer in zip(turn, expected):
            if action.positional and not action.named:
                given = ", ".join(json.dumps(value) for value in action.positional)
            else:
                parameters = schemas[action.server, action.tool]["properties"]
                named = dict(zip(parameters, action.positional)) | action.named
                pairs = ", ".join(f"{name}: {json.dumps(value)}" for name, value in named.items())
                given = f"{{ {pairs} }}" if named else ""
            call = f"answers_{number}.push(await {camel(action.server)}.{camel(action.tool)}({given}));"
            if raises(answer):
                words = "code" if answer is REFUSED else "message"
                caught = f"answers_{number}.push({{ result: `{CAUGHT}${{(error as ToolError).{words}}}` }});"
                lines += [f"try {{ {call} }} catch (error) {{ {caught} }}"]
            else:
                lines.append(call)
        if number == len(turns) - 1:
            lines.append(f"return {to_list_literal(turns)};")
        pieces.append("\n".join([*lines, ""]))
    return pieces


def to_list_literal(turns: list) -> str:
    return f"[{', '.join(f'answers_{number}' for number in range(len(turns)))}]"


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
