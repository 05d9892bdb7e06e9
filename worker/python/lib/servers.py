"""A module per MCP server, below `mcp_tools` and `mcp_tools.aio`, with a function per permitted tool."""

import difflib
import opcode
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import _lockhouse
import lockhouse_signatures
from lockhouse_calls import (
    ToolError, arguments_of, ask, begin as _begin, call, identifier, known_servers, line_here, server_named, tool_named,
    tools_of,
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
        row = tool_named(server, name)
        if row is None and name == "list_tools":
            function = _lister(self.__name__, server)
        elif row is None and name in FUNCTIONS:
            function = bound(FUNCTIONS[name], self.__name__, server)
        else:
            row = row or _unlisted(server, name, self.__name__)
            function = vars(self).get(row["identifier"]) or _function(self.__name__, server, row)
            vars(self).setdefault(row["identifier"], function)
        return vars(self).setdefault(name, function)

    def __dir__(self):
        return sorted({*tools_of(self.__server__), "list_tools"})


def _unlisted(server, name, module):
    """What the supervisor knows of a name that is not listed. If nothing: an error that says what is near."""
    try:
        described = ask(_lockhouse.describe, server, name)
        return {**described, "parameters": [one["name"] for one in described["parameters"]], "described": described}
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


class ToolFunction:
    """A tool of a server, as a function. What its definition says is asked for when somebody wants to know."""

    def __init__(self, module, server, row):
        self.tool = (server, row["name"])
        self.__name__ = self.__qualname__ = row["identifier"]
        self.__module__ = module
        self._row = row

    def __call__(self, *args, **kwargs):
        server, tool = self.tool
        return call(server, tool, arguments_of(server, tool, self._row["parameters"], args, kwargs))

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"

    def __get__(self, instance, owner=None):
        """Itself: a tool does not become a method of whatever holds it."""
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
        """Everything that is known of the tool; what the list says, where it cannot be asked for."""
        if "described" not in self._row:
            try:
                self._row["described"] = ask(_lockhouse.describe, *self.tool)
            except ToolError:
                self._row["described"] = {**self._row, "parameters": []}
        return self._row["described"]


class AsyncToolFunction(ToolFunction):
    """The same for the event loop."""

    def __call__(self, *args, **kwargs):
        # The line is that of the call: a task that is made of it runs from the event loop.
        return self._later(line_here(), args, kwargs)

    async def _later(self, line, args, kwargs):
        from mcp_tools.aio import call as call_async

        server, tool = self.tool
        arguments = arguments_of(server, tool, self._row["parameters"], args, kwargs)
        return await call_async(server, tool, arguments, line=line)


def _function(module, server, row):
    if not module.startswith(_ASYNC):
        return ToolFunction(module, server, row)
    from mcp_tools.aio import _as_coroutine_function

    return _as_coroutine_function(AsyncToolFunction(module, server, row))


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
