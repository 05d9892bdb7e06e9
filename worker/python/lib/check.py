"""Finds the calls of a program that must fail, before any call is sent.

Only plain calls are looked at that run on every path and whose error nothing in the program can catch: not those in `try`, in a
branch, in a loop, or after a possible end of the program. The supervisor judges them, with the checks of a real call.
"""

import ast
import builtins

import _lockhouse
import mcp_tools
import lockhouse_sources as sources
from lockhouse_calls import ToolError, ask, find_server, identifier, known_servers, remember_tool
from lockhouse_resources import FUNCTIONS
from lockhouse_servers import SEARCHES, ServerModule, left_out_reason, unknown_server_message
from lockhouse_values import to_json

RESULT = "<result>"  # The name of the program's value: no valid identifier, so that code cannot use it.
CALLS_MAX = 64
_SHOWN_MAX = 5
_DEPTH_MAX = 4  # Levels of functions of the program that are followed.
_NODES_MAX = 20_000  # Longer programs are not checked.
# Names with which a program may end early: what follows need not run.
_EXITS = frozenset("exit quit _exit SystemExit KeyboardInterrupt abort kill raise_signal".split())
_NO_TOOLS = {*SEARCHES, *FUNCTIONS, "list_tools"}
_GATHERERS = ("gather", "run")


class CheckError(ToolError):
    """The failures that were found. The location is that of the first."""

    def __init__(self, code, message, server, tool, lineno, offset, end):
        super().__init__(code, message, server, tool)
        self.filename, self.lineno, self.offset, self.end = sources.current(), lineno, offset, end


CheckError.__name__ = CheckError.__qualname__ = "ToolError"
CheckError.__module__ = "mcp_tools"


class _Planned:
    """A call that the program will make: where it is, and what is known of it."""

    __slots__ = ("node", "server", "tool", "arguments")

    def __init__(self, node, server, tool, arguments):
        self.node, self.server, self.tool, self.arguments = node, server, tool, arguments


def check(tree, code, variables):
    """Raises the failures of calls that must fail. `variables` are those of earlier runs of the session."""
    if not any(identifier(server) in code or server in code for server in known_servers()):
        return
    nodes = list(ast.walk(tree))
    if len(nodes) > _NODES_MAX or any(getattr(node, "id", None) in _EXITS or getattr(node, "attr", None) in _EXITS for node in nodes):
        return
    finder = _Finder(tree, nodes, variables)
    calls = finder.find()[:CALLS_MAX]
    if calls:
        findings = [*finder.unknown_servers, *_judge(calls)]
        if findings:
            raise _error(sorted(findings, key=lambda found: (found[0].lineno, found[0].col_offset)))


def _judge(calls):
    """Asks the supervisor about the calls. Returns its findings, each with the call."""
    planned = [(call.server, call.tool, call.arguments, call.node.lineno) for call in calls]
    try:
        answer = ask(_lockhouse.check_calls, planned)
    except ToolError:
        return ()  # The run reports what is wrong.
    for number, row in answer["tools"]:
        remember_tool(calls[number].server, calls[number].tool, row)
    return [(calls[finding["call"]].node, finding) for finding in answer["findings"]]


def _error(findings):
    node, first = findings[0]
    message = first["message"]
    if len(findings) > 1:
        others = [f"line {node.lineno}, column {_column(node)}: {finding['message']}" for node, finding in findings[1:_SHOWN_MAX]]
        more = [f"and {len(findings) - _SHOWN_MAX} more"] if len(findings) > _SHOWN_MAX else []
        message = "\n".join([message, "Also:", *others, *more])
    end = node.end_col_offset if node.end_lineno == node.lineno else None
    return CheckError(first["code"], message, first.get("server"), first.get("tool"), node.lineno, node.col_offset, end)


def _column(node):
    line = sources.line(sources.current(), node.lineno)
    return len(line.encode("utf-8", "surrogatepass")[:node.col_offset].decode(errors="replace")) + 1


class _Finder:
    """Collects the calls of one program that run on every path."""

    def __init__(self, tree, nodes, variables):
        self.tree = tree
        self.variables = variables
        self.calls = []
        self.functions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self.following = []
        self.bound = {}
        self.unknown_servers = []
        imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.meanings = dict(filter(None, (self._meaning(node, alias) for node in imports for alias in node.names)))
        for node in nodes:
            for name in _bound_names(node):
                self.bound[name] = self.bound.get(name, 0) + 1

    def find(self):
        self._statements(self.tree.body)
        return self.calls

    def _meaning(self, node, alias):
        """What an import binds: the name, and (server, None, is_async) for a module or (server, tool, is_async) for a tool."""
        package, _, server = (getattr(node, "module", None) or "").partition(".")
        if package != "mcp_tools":
            return None
        is_async = server == "aio" or server.startswith("aio.")
        server = server[len("aio."):] if is_async else server
        name = server or alias.name
        found = find_server(name)
        if found is None and name not in vars(mcp_tools):
            left_out = left_out_reason(name)
            code, message = ("denied", left_out) if left_out else ("unknown_tool", unknown_server_message(name))
            self.unknown_servers.append((node, {"code": code, "message": message}))
        return found and (alias.asname or alias.name, (found, alias.name if server else None, is_async))

    # Statements

    def _statements(self, body):
        """Looks at statements in order, up to the first after which the next need not run."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)):
                continue
            if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
                if node.value is not None:
                    self._expression(node.value, is_awaited=_is_result(node))
                if isinstance(node, ast.Return):
                    return
            elif isinstance(node, (ast.If, ast.While)):
                self._expression(node.test)
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                self._expression(node.iter)
            elif isinstance(node, ast.Assert):
                self._expression(node.test)
            elif not isinstance(node, (ast.Delete, ast.Try, ast.With)):
                return
            if any(isinstance(part, ast.Return) for part in ast.walk(node)):
                return

    # Expressions

    def _expression(self, node, is_awaited=False):
        """Looks at the parts of an expression that are always evaluated."""
        if isinstance(node, ast.Call):
            self._call(node, is_awaited)
        elif isinstance(node, ast.Await):
            self._expression(node.value, is_awaited=True)
        elif isinstance(node, ast.BoolOp):
            self._expression(node.values[0])
        elif isinstance(node, ast.IfExp):
            self._expression(node.test)
        elif isinstance(node, ast.Compare):
            self._expression(node.left)
            self._expression(node.comparators[0])
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self._expression(node.generators[0].iter)
        elif not isinstance(node, ast.Lambda):
            for part in ast.iter_child_nodes(node):
                self._expression(part)

    def _call(self, node, is_awaited):
        is_gathering = is_awaited or _last_name(node.func) == "run"
        is_gathering = is_gathering and _last_name(node.func) in _GATHERERS and not any(word.arg == "return_exceptions" for word in node.keywords)
        for argument in node.args:
            self._expression(argument, is_awaited=is_gathering)
        for word in node.keywords:
            self._expression(word.value)
        if not isinstance(node.func, ast.Name):
            self._expression(node.func)
        name = getattr(node.func, "id", None)
        function = self.functions.get(name)
        if function is not None:
            self._follow(function, is_awaited)
            return
        target = self._target(node.func)
        if target is not None and (is_awaited or not target[2]):
            server, tool, _ = target
            self.calls.append(_Planned(node, server, tool, _arguments(node)))

    def _follow(self, function, is_awaited):
        """Looks at the statements of a function of the program that is called."""
        is_single = self.bound.get(function.name) == 1 and function.name not in self.variables and not function.decorator_list
        runs = is_awaited or isinstance(function, ast.FunctionDef)
        if not is_single or not runs or function in self.following or len(self.following) >= _DEPTH_MAX or _is_generator(function):
            return
        self.following.append(function)
        self._statements(function.body)
        self.following.pop()

    def _target(self, function):
        """The server, the tool and whether it is async, for the function of a call; None for other functions."""
        if isinstance(function, ast.Name):
            meaning = self._known(function.id)
            return meaning if meaning is not None and meaning[1] is not None and meaning[1] not in _NO_TOOLS else None
        if not isinstance(function, ast.Attribute) or function.attr.startswith("__") or function.attr in _NO_TOOLS:
            return None
        module = self._module(function.value)
        return module and (module[0], function.attr, module[2])

    def _module(self, node):
        """The server whose module an expression is."""
        if isinstance(node, ast.Name):
            meaning = self._known(node.id)
            return meaning if meaning is not None and meaning[1] is None else None
        return None

    def _known(self, name):
        """What a name of the program means, if it has one meaning only."""
        if name in self.meanings:
            return self.meanings[name] if self.bound.get(name) == 1 else None
        if name in self.bound or name in self.variables:
            return None
        value = vars(builtins).get(name)
        if isinstance(value, ServerModule):
            return value.__server__, None, value.__name__.startswith("mcp_tools.aio")
        return None


def _is_result(node):
    """Whether a statement is the last expression of the program, which the engine awaits."""
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == RESULT


def _bound_names(node):
    """The names that a part of the program binds."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (node.name,)
    if isinstance(node, ast.arg):
        return (node.arg,)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0],)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return (*node.names, *node.names)
    names = (getattr(node, "name", None), getattr(node, "rest", None)) if type(node).__name__.startswith(("ExceptHandler", "Match")) else ()
    return tuple(name for name in names if name)


def _is_generator(function):
    return any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(function))


def _last_name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _arguments(call):
    """The arguments as JSON, with null for values that are not literals; None if their names or their number are not known."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(word.arg is None for word in call.keywords):
        return None
    if call.args and call.keywords:
        return None
    if call.keywords:
        named = {word.arg: _literal(word.value) for word in call.keywords}
        return to_json(named) if len(named) == len(call.keywords) else None
    values = [_literal(argument) for argument in call.args]
    # A single object contains the arguments by name.
    if len(values) == 1 and not isinstance(values[0], (str, int, float, bool)):
        return None
    return to_json(values)


def _literal(node):
    """The value of a literal without parts; None for everything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) in (int, float) else None
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if type(value) in (str, bool, int, float) and not (type(value) is int and abs(value) >= 1 << 53) else None
