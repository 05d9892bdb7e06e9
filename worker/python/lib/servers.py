"""A module per MCP server, below `mcp_tools` and `mcp_tools.aio`, with a function per permitted tool."""

import difflib
import opcode
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import _lockhouse
from lockhouse_calls import (
    ToolError, arguments_of, ask, begin as _begin, call, identifier, known_servers, line_here, server_named, tools_of,
)
from lockhouse_resources import FUNCTIONS, bound

_SYNC, _ASYNC = "mcp_tools.", "mcp_tools.aio."
_imported = []
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def begin(servers):
    """A new execution: what an earlier one imported is forgotten."""
    _begin(servers)
    while _imported:
        name = _imported.pop()
        sys.modules.pop(name, None)
        parent, _, child = name.rpartition(".")
        vars(sys.modules[parent]).pop(child, None)


class ServerModule(ModuleType):
    """One server. Its tools are listed at the first use of any name, not at the import."""

    def __init__(self, name, server):
        super().__init__(name, f"The permitted tools of the MCP server {server}, as functions.")
        self.__dict__["__server__"] = server

    def __getattr__(self, name):
        server = self.__server__
        if name == "__all__":
            return list(tools_of(server))
        if name.startswith("__"):
            raise AttributeError(name)
        row = tools_of(server).get(name)
        if row is None and name == "list_tools":
            function = _lister(self.__name__, server)
        elif row is None and name in FUNCTIONS:
            function = bound(FUNCTIONS[name], self.__name__, server)
        else:
            function = _function(self.__name__, server, row or _unlisted(server, name, self.__name__))
        return self.__dict__.setdefault(name, function)

    def __dir__(self):
        return sorted({*tools_of(self.__server__), "list_tools"})


def _unlisted(server, name, module):
    """What the supervisor knows of a name that is not listed. If nothing: an error that says what is near."""
    try:
        tool = ask(_lockhouse.describe, server, name)
        # Under another form of its name; its parameters are known by the one that is listed.
        return next((row for row in tools_of(server).values() if row["name"] == tool["name"]), tool)
    except ToolError as error:
        if error.code != "unknown_tool":
            raise
    near = difflib.get_close_matches(name, tools_of(server), 3)
    hint = f"nearest: {', '.join(near)}" if near else "none has a name like it"
    message = f"the MCP server {server!r} has no tool {name!r} ({hint}); search_tools(query) finds tools"
    raise missing(message, name, module, 3) from None


def missing(message, name, module, depth):
    """The error for a name that a module has not. An `import` shows its own words for an AttributeError."""
    frame = sys._getframe(depth)
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {module!r}: {message}", name=module)
    return AttributeError(message)


def _function(module, server, row):
    tool = row["name"]
    name = row.get("identifier") or identifier(tool)
    parameters = row.get("parameters", ())
    if module.startswith(_ASYNC):
        from mcp_tools.aio import _as_coroutine_function, call as call_async

        async def later(line, args, kwargs):
            return await call_async(server, tool, arguments_of(server, tool, parameters, args, kwargs), line=line)

        # The line is that of the call: a task that is made of it runs from the event loop.
        @_as_coroutine_function
        def function(*args, **kwargs):
            return later(line_here(), args, kwargs)

        later.__name__ = later.__qualname__ = name
    else:
        def function(*args, **kwargs):
            return call(server, tool, arguments_of(server, tool, parameters, args, kwargs))

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = "\n\n".join(filter(None, (row.get("python"), row.get("summary") or row.get("description"))))
    function.tool = (server, tool)
    return function


def _lister(module, server):
    def list_tools():
        """The permitted tools of this server."""
        return list(tools_of(server).values())

    list_tools.__qualname__, list_tools.__module__ = "list_tools", module
    return list_tools


def no_server(name):
    """Words for a server that is not there."""
    servers = known_servers()
    shown = ", ".join(servers[:20]) + (", …" if len(servers) > 20 else "")
    near = difflib.get_close_matches(name, map(identifier, servers), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no MCP server {name!r}; {hint}servers: {shown or 'none'}"


class ServerFinder:
    """Finds `mcp_tools.<server>` and `mcp_tools.aio.<server>`."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        prefix = _ASYNC if fullname.startswith(_ASYNC) else _SYNC
        if not fullname.startswith(prefix):
            return None
        name = fullname[len(prefix):]
        server = server_named(name)
        if server is None:
            raise ModuleNotFoundError(no_server(name), name=fullname)
        return ModuleSpec(fullname, cls, loader_state=server)

    @staticmethod
    def create_module(spec):
        _imported.append(spec.name)
        return ServerModule(spec.name, spec.loader_state)

    @staticmethod
    def exec_module(module):
        pass


def server_attribute(package, name):
    """`mcp_tools.github` without an import of it."""
    if name.startswith("__"):
        raise AttributeError(name)
    if server_named(name) is None:
        raise missing(no_server(name), name, package, 3)
    __import__(f"{package}.{name}")
    return sys.modules[f"{package}.{name}"]
