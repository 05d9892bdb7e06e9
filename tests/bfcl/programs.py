"""A task's gold actions, as the reference makes them and as a program in each language makes them."""

import ast
import copy
import json
from dataclasses import dataclass

import environments

CAUGHT = "Error during execution: "
# What a program is told of a call whose arguments the leaderboard's own document of the function does not allow.
REFUSED = {"result": f"{CAUGHT}invalid_arguments"}


@dataclass(frozen=True)
class Action:
    """`cd(folder='document')`, and which server's tool that is."""

    server: str
    tool: str
    positional: list
    named: dict

    @staticmethod
    def of(source: str, owners: dict[str, str]) -> "Action":
        call = ast.parse(source, mode="eval").body
        positional = [ast.literal_eval(value) for value in call.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        return Action(owners[call.func.id], call.func.id, positional, named)


def actions(task: dict) -> list[list[Action]]:
    """By turn."""
    owners = {
        name: environments.SERVERS[involved]
        for involved in task["involved_classes"]
        for name in environments.methods(involved)
    }
    return [[Action.of(source, owners) for source in turn] for turn in task["ground_truth"]]


def fits(action: Action, schema: dict) -> bool:
    """Whether the types of an action's arguments are those of the document. A few of the gold actions' are not."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    declared = schema["properties"]
    named = dict(zip(declared, action.positional)) | action.named
    return all(isinstance(value, kinds[declared[name]["type"]]) for name, value in named.items())


class Reference:
    """What the environments answer and become when nothing stands between: but where a call must be refused, which no
    environment has a notion of, it is."""

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
        if not fits(action, schemas[action.server, action.tool]):
            self.refused += 1
            return REFUSED
        action = copy.deepcopy(action)  # An environment keeps, and changes, what it is given.
        try:
            return environments.answer(
                getattr(self.instances[action.server], action.tool)(*action.positional, **action.named)
            )
        except Exception as error:
            return {"result": f"{CAUGHT}{error}"}


def raises(answer: dict) -> bool:
    return str(answer.get("result")).startswith(CAUGHT)


def python(turns: list[list[Action]], answers: list[list[dict]], schemas: dict) -> list[str]:
    """A piece for each turn, to be run one after the other or as one program. The calls are as the actions write them. What
    the reference raises is caught, and nothing else."""
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
            lines += ["", listed(turns)]
        pieces.append("\n".join([*lines, ""]))
        lines = []
    return pieces


def typescript(turns: list[list[Action]], answers: list[list[dict]], schemas: dict) -> list[str]:
    """The same with the servers as objects and names as TypeScript writes them. Arguments are positional where the action has
    no others, and an object elsewhere."""
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
            lines.append(f"return {listed(turns)};")
        pieces.append("\n".join([*lines, ""]))
    return pieces


def listed(turns: list) -> str:
    return f"[{', '.join(f'answers_{number}' for number in range(len(turns)))}]"


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
