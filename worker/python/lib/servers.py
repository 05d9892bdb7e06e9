"""Modules for the MCP servers, below `mcp_tools` and `mcp_tools.aio`, with a function for each permitted tool."""

import difflib
import opcode
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import _lockhouse
import lockhouse_signatures
from lockhouse_calls import (
    NAMES_MAX, ToolError, encode_arguments, ask, begin_run as _begin_run, call, identifier, known_servers, calling_line, find_server, find_tool,
    is_same_name, tools_of,
)
from lockhouse_values import parse
from lockhouse_resources import FUNCTIONS, bind_to_server

_SYNC, _ASYNC = "mcp_tools.", "mcp_tools.aio."
_imported = []
_left_out = {}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]
# Names of the search function in programs for similar products; a tool of such a name has precedence.
SEARCHES = ("search", "search_tools", "searchTools")


def begin_run(servers, tools, left_out):
    """Starts a run: removes the server modules that an earlier run imported. `tools` has the entries of tools that the program mentions, and
    `left_out` the error texts for servers that the request to run code left out, both as JSON."""
    _begin_run(servers, tools)
    _left_out.clear()
    _left_out.update(parse(left_out) if left_out else {})
    while _imported:
        name = _imported.pop()
        sys.modules.pop(name, None)
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            vars(sys.modules[parent]).pop(child, None)


class ServerModule(ModuleType):
    """The module of one server. Its tools are requested when a name is first used, not on import. Each tool is a module in it, too."""

    def __init__(self, name, server):
        super().__init__(name, f"The permitted tools of the MCP server {server}, as functions.")
        self.__dict__["__server__"] = server
        self.__dict__["__path__"] = []

    def __getattr__(self, name):
        server = self.__server__
        if name == "__all__":
            return list(tools_of(server))
        if name.startswith("__"):
            raise AttributeError(name)
        row = find_tool(server, name)
        if row is None and name == "list_tools":
            function = _make_list_tools(self.__name__, server)
        elif row is None and name in FUNCTIONS:
            function = bind_to_server(FUNCTIONS[name], self.__name__, server)
        else:
            try:
                row = row or _describe_unlisted(server, name, self.__name__)
            except (AttributeError, ImportError):
                if name not in SEARCHES:
                    raise
                return _make_search(self.__name__, server)
            function = vars(self).get(row["identifier"]) or _make_function(self.__name__, server, row)
            vars(self).setdefault(row["identifier"], function)
        return vars(self).setdefault(name, function)

    def __dir__(self):
        return sorted({*tools_of(self.__server__), "list_tools"})


def tool_spec(finder, fullname, package):
    """The spec of a tool as a module of its server, as in `from servers.github.create_issue import create_issue`; None without a server.

    The module is the function itself. `package` is the part of the name before the server, with a dot.
    """
    parent, _, name = fullname.rpartition(".")
    server = find_server(parent[len(package):]) if parent.startswith(package) and name else None
    module = sys.modules.get(parent)
    if server is None or not isinstance(module, ServerModule):
        return None
    try:
        function = getattr(module, name)
    except AttributeError as error:
        raise ModuleNotFoundError(str(error), name=fullname) from None
    return ModuleSpec(fullname, finder, loader_state=function)


def _describe_unlisted(server, name, module):
    """Describes a tool that is not listed. Raises an error with similar names if the supervisor does not know the tool."""
    try:
        described = ask(_lockhouse.describe, server, name)
        return {**described, "parameters": [one["name"] for one in described["parameters"]], "described": described}
    except ToolError as error:
        if error.code != "unknown_tool":
            raise
    raise missing_name_error(_unknown_tool_message(server, name), name, module, 3) from None


def _unknown_tool_message(server, name):
    near = difflib.get_close_matches(name, tools_of(server), 3)
    hint = f"nearest: {', '.join(near)}" if near else "none has a name like it"
    return f"the MCP server {server!r} has no tool {name!r} ({hint}); search_tools(query) finds tools"


def missing_name_error(message, name, module, depth):
    """Creates the error for an unknown name in a module: an ImportError if an `import` statement asks, otherwise an AttributeError."""
    frame = sys._getframe(depth)
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {module!r}: {message}", name=module)
    return AttributeError(message)


class ToolFunction:
    """A function that calls a tool. Its definition is requested when it is first needed."""

    def __init__(self, module, server, row):
        self.tool = (server, row["name"])
        self.__name__ = self.__qualname__ = row["identifier"]
        self.__module__ = module
        self._row = row

    def __call__(self, *args, **kwargs):
        server, tool = self.tool
        return call(server, tool, encode_arguments(server, tool, self._row["parameters"], args, kwargs))

    def __getattr__(self, name):
        """The function itself under its own name, as a member of the module `servers.github.create_issue`."""
        if name[:1] != "_" and is_same_name(name, self.tool[1]):
            return self
        raise AttributeError(f"the tool {vars(self).get('__name__')} has no attribute {name!r}: call it")

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"

    def __get__(self, instance, owner=None):
        """Returns the function itself, so that a tool does not become a method of a class that contains it."""
        return self

    @property
    def __doc__(self):
        return lockhouse_signatures.doc(self._described())

    @property
    def __signature__(self):
        return lockhouse_signatures.signature(self._described())

    @property
    def __annotations__(self):
        return lockhouse_signatures.annotations(self._described())

    def _described(self):
        """The full description of the tool, or its entry in the list if the description is not available."""
        if "described" not in self._row:
            try:
                self._row["described"] = ask(_lockhouse.describe, *self.tool)
            except ToolError:
                self._row["described"] = {**self._row, "parameters": []}
        return self._row["described"]


class AsyncToolFunction(ToolFunction):
    """A tool as an async function."""

    def __call__(self, *args, **kwargs):
        # The line is determined now: a task created from the coroutine runs from the event loop.
        return self._call_async(calling_line(), args, kwargs)

    async def _call_async(self, line, args, kwargs):
        from mcp_tools.aio import call as call_async

        server, tool = self.tool
        arguments = encode_arguments(server, tool, self._row["parameters"], args, kwargs)
        return await call_async(server, tool, arguments, line=line)


def _make_function(module, server, row):
    if not module.startswith(_ASYNC):
        return ToolFunction(module, server, row)
    from mcp_tools.aio import _as_coroutine_function

    return _as_coroutine_function(AsyncToolFunction(module, server, row))


def _make_list_tools(module, server):
    def list_tools():
        """Lists the permitted tools of this server."""
        return list(tools_of(server).values())

    list_tools.__qualname__, list_tools.__module__ = "list_tools", module
    return list_tools


def _make_search(module, server):
    def search(query="", limit=_lockhouse.SEARCH_LIMIT_DEFAULT, **options):
        """Searches the permitted tools of this server, as `mcp_tools.search_tools` does."""
        return sys.modules["mcp_tools"].search_tools(query, limit, **{"server": server, **options})

    async def search_async(*arguments, **options):
        """Searches the permitted tools of this server."""
        return search(*arguments, **options)

    return search_async if module.startswith(_ASYNC) else search


def split_flat_name(name, marks=("__", ".", "/", "_")):
    """Splits a name such as `mcp__github__list_issues` or `github.list_issues` into server and tool; None if no server has such a name."""
    plain = name.removeprefix("mcp__")
    for server in sorted(known_servers(), key=len, reverse=True):
        for written in (server, identifier(server)):
            for mark in marks:
                tool = plain.removeprefix(f"{written}{mark}")
                if tool and tool != plain:
                    return server, tool
    return None


def left_out_reason(name):
    """Why a server that exists is not available to this run; None for any other name."""
    return next((text for server, text in _left_out.items() if name in (server, identifier(server))), None)


def _refuse_left_out(name):
    reason = left_out_reason(name)
    if reason:
        raise ToolError("denied", reason, server=name)


def unknown_server_message(name):
    """Message for an unknown server, or for a tool that was named with its server where a server is expected."""
    server, tool = split_flat_name(name, ("__",)) or (None, None)
    if server is not None and find_tool(server, tool) is None:
        return _unknown_tool_message(server, tool)
    if server is not None:
        return f"{name!r} names the tool {tool} of the MCP server {server}: write `from mcp_tools.{identifier(server)} import {identifier(tool)}`"
    near = difflib.get_close_matches(name, map(identifier, known_servers()), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no MCP server {name!r}; {hint}{servers_text()}"


def servers_text():
    """The first names of the servers, for messages."""
    servers = known_servers()
    more = f" and {len(servers) - NAMES_MAX} more" if len(servers) > NAMES_MAX else ""
    return f"servers: {', '.join(servers[:NAMES_MAX]) or 'none'}{more}"


class ServerFinder:
    """Import finder for `mcp_tools.<server>` and `mcp_tools.aio.<server>`."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        prefix = _ASYNC if fullname.startswith(_ASYNC) else _SYNC
        if not fullname.startswith(prefix):
            return None
        name = fullname[len(prefix):]
        server = find_server(name) if "." not in name else None
        if server is None:
            spec = tool_spec(cls, fullname, prefix)
            if spec is not None:
                return spec
            _refuse_left_out(name)
            raise ModuleNotFoundError(unknown_server_message(name), name=fullname)
        return ModuleSpec(fullname, cls, loader_state=server)

    @staticmethod
    def create_module(spec):
        _imported.append(spec.name)
        return ServerModule(spec.name, spec.loader_state) if isinstance(spec.loader_state, str) else spec.loader_state

    @staticmethod
    def exec_module(module):
        pass


def server_attribute(package, name):
    """Returns the module of a server as an attribute, as in `mcp_tools.github`, without an explicit import."""
    if name.startswith("__"):
        raise AttributeError(name)
    if find_server(name) is None:
        _refuse_left_out(name)
        raise missing_name_error(unknown_server_message(name), name, package, 3)
    __import__(f"{package}.{name}")
    return sys.modules[f"{package}.{name}"]
