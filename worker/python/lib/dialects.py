"""Names that programs use without importing them, as in similar products: servers, `tools`, `codemode`, `ALL_TOOLS`, `callMCPTool`,
`github__list_issues` and others.

A name becomes a builtin for one run if the compiled program contains it. Variables of the program, the language's builtins and the
names of servers have precedence, in this order. A program without such names sends no request and pays for no object.
"""

import ast
import asyncio
import builtins
import functools
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

import mcp_tools
from lockhouse_calls import ToolError, find_server, identifier, known_servers, search_names, tools_of
from lockhouse_servers import SEARCHES, ServerModule, _imported, left_out_reason, server_attribute, split_flat_name, tool_spec, unknown_server_message

_FUNCTIONS = {*mcp_tools.__all__, "call_mcp_tool", "callMCPTool", "discover_mcp_tools", "discoverMCPTools", "get_tool_schema", "getToolSchema"}
_OTHER_NAMES = {"callTool": "call_tool", "searchTools": "search_tools", "listServers": "list_servers"}
_NAMESPACES = ("codemode", "tools", "mcp", "servers")
_MODULES = ("mcp_tools", "skills")
_NAMES = {*_NAMESPACES, *_MODULES, *_FUNCTIONS, *_OTHER_NAMES, "ALL_TOOLS"}
# Functions whose arguments are awaitable.
_TAKE_AWAITABLES = ("gather", "create_task", "ensure_future", "wait_for", "run")
_offered = []


def begin_run():
    """Removes the names of the run before."""
    while _offered:
        vars(builtins).pop(_offered.pop(), None)


def offer(code, tree, variables):
    """Defines the names that a program uses and that are neither variables nor builtins. `tree` is its syntax tree."""
    for name, value in meanings(code, tree, variables):
        setattr(builtins, name, value)
        _offered.append(name)


def meanings(code, tree, variables):
    """The names that code uses, that are neither variables nor builtins and have a meaning: pairs of name and value."""
    names = _names_in(code)
    found = (names & _NAMES) | (names & {identifier(server) for server in known_servers()})
    found.update(name for name in names if "__" in name)
    for name in found - _imported_names(tree) if found else ():
        # The program and each skill await the calls of a server, or do not.
        if hasattr(builtins, name) and name not in _offered or name == "ALL_TOOLS" and name in variables:
            continue
        value = _meaning(name, tree)
        if value is not None:
            yield name, value


def _names_in(code):
    names, pending = set(), [code]
    while pending:
        code = pending.pop()
        names.update(code.co_names)
        pending += (part for part in code.co_consts if isinstance(part, CodeType))
    return names


def _imported_names(tree):
    imports = (node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _meaning(name, tree):
    """What a name without a definition stands for; None for an ordinary name."""
    if any(name == identifier(server) for server in known_servers()):
        return server_attribute(_package(name, tree), name)
    if name in _NAMESPACES:
        return Namespace(name, _package(name, tree))
    if name in _FUNCTIONS:
        return _function(name, _package(name, tree))
    if name in _OTHER_NAMES:
        return _function(_OTHER_NAMES[name], _package(name, tree))
    if name in _MODULES:
        return __import__(name)
    if name == "ALL_TOOLS":
        return all_tools()
    return _flat_function(name, _package(name, tree), ("__",)) if "__" in name.strip("_") else None


def _package(name, tree):
    """The package of async functions if the program awaits calls of this name, otherwise that of ordinary functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Await) and _root(node.value) == name:
            return "mcp_tools.aio"
        if isinstance(node, ast.Call) and _last_name(node.func) in _TAKE_AWAITABLES:
            if any(_root(part) == name for argument in node.args for part in _arguments_of(argument)):
                return "mcp_tools.aio"
    return "mcp_tools"


def _arguments_of(argument):
    """An argument, or what a list or comprehension that is passed as arguments contains."""
    if isinstance(argument, ast.Starred):
        return _arguments_of(argument.value)
    if isinstance(argument, (ast.ListComp, ast.GeneratorExp)):
        return [argument.elt]
    return argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]


def _root(node):
    """The name at the beginning of a call, as `github` in `github.list_issues()`; None for other expressions."""
    if not isinstance(node, ast.Call):
        return None
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", None)


def _last_name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _function(name, package):
    """A function of `mcp_tools`, or its async form if there is one."""
    function = getattr(mcp_tools, name)
    if package == "mcp_tools":
        return function
    name = "call_tool" if name in ("call_mcp_tool", "callMCPTool") else name
    return vars(sys.modules["mcp_tools.aio"]).get(name) or _as_async(function)


def _as_async(function):
    if isinstance(function, type):
        return function

    async def awaited(*arguments, **named):
        return function(*arguments, **named)

    return functools.wraps(function)(awaited)


def _flat_function(name, package, *marks):
    """The function for a name that contains its server, such as `github__list_issues`; None if no server has such a name."""
    server, tool = split_flat_name(name, *marks) or (None, None)
    if server is None:
        return None

    def flat(*arguments, **named):
        # The tool is looked up now: programs that do not call it send no request.
        return getattr(server_attribute(package, identifier(server)), tool)(*arguments, **named)

    flat.__name__ = flat.__qualname__ = name
    return flat


def all_tools():
    """Lists server, name and description of every permitted tool. Servers that are not available are omitted."""
    return [
        {"server": server, "name": row["name"], "description": row.get("summary") or ""}
        for server in known_servers() for row in _tools_or_empty(server)
    ]


def _tools_or_empty(server):
    try:
        return tools_of(server).values()
    except ToolError:
        return ()


class Namespace:
    """All servers and functions as attributes and items: `tools.github.list_issues()`, `tools["github"]`, `codemode.search(...)`."""

    def __init__(self, name, package):
        self.__name, self.__package = name, package

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__member(name)

    def __getitem__(self, name):
        return self.__member(str(name))

    def __member(self, name):
        if find_server(name):
            return server_attribute(self.__package, identifier(find_server(name)))
        function = "search_tools" if name in SEARCHES else "call_tool" if name == "call" else _OTHER_NAMES.get(name, name)
        if function in _FUNCTIONS:
            return _function(function, self.__package)
        flat = _flat_function(name, self.__package)
        if flat is None:
            raise AttributeError(f"{self.__name}.{name}: {_place_of(name) or unknown_server_message(name)}")
        return flat

    def __iter__(self):
        return map(identifier, known_servers())

    def __dir__(self):
        return list(self)

    def __repr__(self):
        return f"<{self.__name}: {', '.join(known_servers()[:6]) or 'no servers'}>"


def _place_of(tool):
    """How to call a tool whose name is given without its server; None if no tool has the name."""
    for row in search_names(tool):
        if tool in (row["tool"], identifier(row["tool"])):
            return f"it is a tool of {row['server']}: write {identifier(row['server'])}.{identifier(row['tool'])}(...)"
    return None


class DialectFinder:
    """Import finder for `github`, `servers.github`, `servers.github.list_issues` and the same with `tools`, the second-to-last in sys.meta_path: installed modules have precedence."""

    packages = ("servers", "tools")

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        top, _, rest = fullname.partition(".")
        name = rest if top in cls.packages and rest else fullname
        server = find_server(name) if "." not in name else None
        if server is None and fullname not in cls.packages:
            return tool_spec(cls, fullname, f"{top}." if name is rest else "") or cls._refuse(fullname, top, rest)
        return ModuleSpec(fullname, cls, loader_state=server, is_package=server is None)

    @staticmethod
    def _refuse(fullname, top, server):
        """Raises the error for an unknown server in one of the packages; returns None for other modules."""
        if isinstance(getattr(sys.modules.get(top), "__spec__", None), ModuleSpec) and sys.modules[top].__spec__.loader is DialectFinder:
            raise ModuleNotFoundError(left_out_reason(server) or unknown_server_message(server), name=fullname)

    @staticmethod
    def create_module(spec):
        _imported.append(spec.name)
        if isinstance(spec.loader_state, str):
            return ServerModule(f"mcp_tools.{identifier(spec.loader_state)}", spec.loader_state)
        if spec.loader_state is not None:
            return spec.loader_state
        package = ModuleType(spec.name, "The MCP servers.")
        package.__getattr__ = lambda name: server_attribute("mcp_tools", name)
        package.__dir__ = lambda: [identifier(server) for server in known_servers()]
        return package

    @staticmethod
    def exec_module(module):
        pass


def _outside_of_loop(function):
    """Makes `asyncio.run` work where a loop runs, as in a program with top-level await: the coroutine runs in a loop of its own."""
    events, swap = asyncio.events, getattr(asyncio.tasks, "_swap_current_task", None)

    @functools.wraps(function)
    def run(main, **options):
        loop = events._get_running_loop()
        if loop is None:
            return function(main, **options)
        task = swap(loop, None) if swap else None
        events._set_running_loop(None)
        try:
            return function(main, **options)
        finally:
            events._set_running_loop(loop)
            if swap:
                swap(loop, task)

    return run


def install():
    """Called in the zygote."""
    asyncio.run = asyncio.runners.run = _outside_of_loop(asyncio.run)
