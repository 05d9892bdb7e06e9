"""Requests to the supervisor: one question, one answer or a ToolError."""

import keyword
import threading
from sys import _getframe

import _lockhouse
import lockhouse_sources as sources
from lockhouse_streams import flush, require_room
from lockhouse_values import from_envelope, parse, to_json

_FRAMES_MAX = 64
_REMEMBERED_BYTES = 64 * 1024


class ToolError(Exception):
    """A tool call, or a question about tools, that failed. `code` is for programs, `str()` for people."""

    def __init__(self, code, message, server=None, tool=None, retryable=False):
        super().__init__(message)
        self.code = code
        self.message = message
        self.server = server
        self.tool = tool
        self.retryable = retryable

    def __str__(self):
        return str(self.message)

    def __reduce__(self):
        return ToolError, (self.code, self.message, self.server, self.tool, self.retryable)


ToolError.__module__ = "mcp_tools"

_servers = []
_tools = {}
_listing = threading.Lock()
_last = [None, None]  # A tool and its answer, for the words of an error.


def begin(servers):
    """A new execution, which may know these servers."""
    _servers[:] = servers
    _tools.clear()
    _last[:] = None, None


def ask(request, *arguments):
    """The parsed answer to one of the native requests that list or describe."""
    flush()
    require_room()
    return read(parse, request(*arguments))


def call(server, tool, arguments, timeout=None):
    """`tools/call`, waiting for its answer; `arguments` is JSON."""
    line, timeout_ms = line_here(), milliseconds(timeout)
    flush()
    require_room(len(arguments))
    return read(from_envelope, _lockhouse.call(server, tool, arguments, timeout_ms, line), server, tool)


def line_here():
    """The line of the program that is being run, by the nearest frame of its own; None where there is none near."""
    frame = _getframe(2)
    for _ in range(_FRAMES_MAX):
        if sources.is_current(frame.f_code.co_filename):
            line = frame.f_lineno
            return line if line is not None and 0 < line else None
        frame = frame.f_back
        if frame is None:
            break
    return None


def milliseconds(timeout):
    """A timeout in seconds as the supervisor gets it; None for the one that is configured."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ToolError("invalid_arguments", "timeout must be a number of seconds above 0")
    return max(1, min(round(min(timeout, 4e6) * 1_000), (1 << 32) - 1))


def read(parsed, reply, server=None, tool=None):
    """The value of a native reply."""
    done, payload = reply
    if not done:
        raise ToolError(*payload)
    try:
        value = parsed(payload)
        if tool is not None:
            _last[:] = (tool, value) if len(payload) <= _REMEMBERED_BYTES else (None, None)
        return value
    except (ValueError, RecursionError) as error:  # An integer of 5,000 digits; a depth of 5,000.
        raise ToolError("tool_failed", f"the answer cannot be read: {error}", server, tool) from None


def search_limit(limit):
    """The limit of a search, in its range."""
    return min(max(int(limit), 1), _lockhouse.SEARCH_LIMIT_MAX)


def search(words):
    """Servers and names of tools that match, for the words of an error: none where there is no answer."""
    try:
        return ask(_lockhouse.search, words, _lockhouse.SEARCH_LIMIT_DEFAULT, "names")["tools"]
    except (ToolError, MemoryError):
        return []


def last_answer(function, unknown=None):
    """What the last call answered, if it was one of that function and is small; else `unknown`."""
    tool, value = _last
    if tool is None or function not in (tool, identifier(tool), "call_tool", "call_mcp_tool", "callMCPTool"):
        return unknown
    return value


def tools_of(server):
    """The permitted tools of a server by identifier; asked once per execution."""
    with _listing:
        if server not in _tools:
            rows = ask(_lockhouse.list_tools, server)
            _tools[server] = {row["identifier"]: row for row in rows}
        return _tools[server]


def tool_named(server, name):
    """The tool that is meant by a name: its identifier or its own name, or another form of one tool's alone."""
    tools = tools_of(server)
    return tools.get(name) or _only(row for row in tools.values() if row["name"] == name) or _only(
        row for row in tools.values() if _folded(row["name"]) == _folded(name))


def known_servers():
    """The names of the servers that this execution may know."""
    return list(_servers)


def server_named(name):
    """The server that is meant by a name: its own, as Python writes it, or another form of one server's alone."""
    if name in _servers:
        return name
    return _only(server for server in _servers if identifier(server) == name) or _only(
        server for server in _servers if _folded(server) == _folded(name))


def _only(found):
    found = list(found)
    return found[0] if len(found) == 1 else None


def _folded(name):
    """What the forms of a name have in common: `list-issues`, `list_issues` and `listIssues` are one."""
    return "".join(filter(str.isalnum, name)).lower()


def identifier(server):
    """A server's name as Python writes it."""
    name = server.replace("-", "_")
    name = f"_{name.lstrip('_')}" if name.startswith("__") else name
    return f"_{name}" if name[:1].isdigit() else f"{name}_" if keyword.iskeyword(name) else name


def arguments_of(server, tool, parameters, positional, named):
    """JSON of a call's arguments: an object, or an array if the supervisor is to name them."""
    if positional and not named:
        return to_json(positional, strict=True)
    if len(positional) > len(parameters):
        listed = ", ".join(parameters) or "none"
        message = f"{tool} takes {len(parameters)} positional arguments but {len(positional)} were given: {listed}"
        raise ToolError("invalid_arguments", message, server, tool)
    for parameter, value in zip(parameters, positional):
        if parameter in named:
            raise ToolError("invalid_arguments", f"{tool} got {parameter} twice", server, tool)
        named[parameter] = value
    return to_json(named, strict=True)
