"""Requests to the supervisor. Each one returns a result or raises a ToolError."""

import keyword
import threading
from sys import _getframe

import _lockhouse
import lockhouse_sources as sources
from lockhouse_streams import flush, require_room
from lockhouse_decoded import texts_in
from lockhouse_results import MalformedResult, from_envelope
from lockhouse_values import parse, to_json

NAMES_MAX = 6  # Names that one message lists.
_FRAMES_MAX = 64
_REMEMBERED_BYTES = 64 * 1024


class ToolError(Exception):
    """A tool call or another request that failed. `code` is for programs, `str()` gives the message. `full_result` gives what the
    server sent beside it."""

    def __init__(self, code, message, server=None, tool=None, retryable=False, result=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.server = server
        self.tool = tool
        self.retryable = retryable
        self._result = result  # JSON of the failed result, if it has more than the message.

    def __str__(self):
        return str(self.message)

    def __reduce__(self):
        return ToolError, (self.code, self.message, self.server, self.tool, self.retryable, self._result)


ToolError.__module__ = "mcp_tools"

_servers = []
_tools = {}
_checked = {}  # Tools of planned calls, by server and name.
_listing = threading.Lock()
_last_result = [None, None]  # Tool and result of the last call, for error messages.
_recent_results = {}  # The latest results of up to three tools, by full name of the tool.
_RECENT_MAX = 3


def begin_run(servers, tools):
    """Starts a run that may use the given servers. `tools` is JSON: server, name and entry of tools that the program mentions; or empty."""
    _servers[:] = servers
    _tools.clear()
    _checked.clear()
    _last_result[:] = None, None
    _recent_results.clear()
    for server, name, row in parse(tools) if tools else ():
        remember_tool(server, name, row)


def ask(request, *arguments):
    """Sends a native request that lists or describes something, and parses its reply."""
    flush()
    require_room()
    return unwrap_reply(parse, request(*arguments))


def call(server, tool, arguments, timeout=None):
    """Calls a tool and waits for its result. `arguments` is from `encode_arguments`."""
    line, timeout_ms = calling_line(), milliseconds(timeout)
    data, texts = arguments
    flush()
    require_room(len(data))
    return unwrap_reply(from_envelope, _lockhouse.call(server, tool, data, timeout_ms, line, texts), server, tool)


def calling_line():
    """The program's line that is being executed, from the nearest frame of the program; None if no frame is near."""
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
    """Converts a timeout from seconds to milliseconds; None means the configured timeout."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ToolError("invalid_arguments", "timeout must be a number of seconds above 0")
    return max(1, min(round(min(timeout, 4e6) * 1_000), (1 << 32) - 1))


def unwrap_reply(parsed, reply, server=None, tool=None):
    """Returns the value of a native reply, or raises its failure."""
    done, payload = reply
    if not done:
        raise ToolError(*payload)
    try:
        value = parsed(payload)
        if tool is not None:
            _remember_result(server, tool, value, len(payload))
        return value
    except MalformedResult as error:
        raise ToolError("tool_failed", f"the server's result is malformed: {error}", server, tool) from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        # Raised by an integer with more than 4,300 digits, by deep nesting, or by members of another type than MCP has.
        raise ToolError("tool_failed", f"the answer cannot be read: {error}", server, tool) from None


def _remember_result(server, tool, value, size):
    is_small = size <= _REMEMBERED_BYTES
    _last_result[:] = (tool, value) if is_small else (None, None)
    name = f"{server}.{tool}"
    _recent_results.pop(name, None)
    if is_small:
        _recent_results[name] = value
        if len(_recent_results) > _RECENT_MAX:
            _recent_results.pop(next(iter(_recent_results)), None)


def recent_results():
    """The latest results of up to three tools: pairs of full name and value, without large ones."""
    return list(_recent_results.items())


def search_limit(limit):
    """Clamps the limit of a search to the valid range."""
    return min(max(int(limit), 1), _lockhouse.SEARCH_LIMIT_MAX)


def search_names(words):
    """Searches tools for error messages. Returns an empty list if the search fails."""
    try:
        return ask(_lockhouse.search, words, _lockhouse.SEARCH_LIMIT_DEFAULT, "names")["tools"]
    except (ToolError, MemoryError):
        return []


def full_name_of(tool):
    """The name with its server of a tool whose name is given alone; None if no tool has the name."""
    return next((f"{row['server']}.{row['tool']}" for row in search_names(tool) if tool in (row["tool"], identifier(row["tool"]))), None)


def last_result(function, unknown=None):
    """Result of the last call if it called this function and the result is small; otherwise `unknown`."""
    tool, value = _last_result
    if tool is None or function not in (tool, identifier(tool), "call_tool", "call_mcp_tool", "callMCPTool"):
        return unknown
    return value


def tools_of(server):
    """The permitted tools of a server by identifier, requested once per run."""
    with _listing:
        if server not in _tools:
            rows = ask(_lockhouse.list_tools, server)
            _tools[server] = {row["identifier"]: row for row in rows}
        return _tools[server]


def remember_tool(server, name, row):
    """Keeps the entry of a tool that the check before the run has returned, so that its server's list need not be requested."""
    _checked[server, name] = row


def find_tool(server, name):
    """Finds a tool by identifier or name, or by another form of the name if that is unambiguous."""
    if (server, name) in _checked:
        return _checked[server, name]
    tools = tools_of(server)
    return tools.get(name) or _only_match(row for row in tools.values() if row["name"] == name) or _only_match(
        row for row in tools.values() if _normalized(row["name"]) == _normalized(name))


def known_servers():
    """Names of the servers that this run may use."""
    return list(_servers)


def find_server(name):
    """Finds a server by name or Python identifier, or by another form of the name if that is unambiguous."""
    if name in _servers:
        return name
    return _only_match(server for server in _servers if identifier(server) == name) or _only_match(
        server for server in _servers if _normalized(server) == _normalized(name))


def _only_match(found):
    found = list(found)
    return found[0] if len(found) == 1 else None


def is_same_name(name, other):
    """Whether two names are equal apart from their spelling, as `list_issues` and `listIssues`."""
    return _normalized(name) == _normalized(other)


def _normalized(name):
    """Normalizes a name: `list-issues`, `list_issues` and `listIssues` are equal."""
    return "".join(filter(str.isalnum, name)).lower()


def identifier(server):
    """Converts a server name to a Python identifier."""
    name = server.replace("-", "_")
    name = f"_{name.lstrip('_')}" if name.startswith("__") else name
    return f"_{name}" if name[:1].isdigit() else f"{name}_" if keyword.iskeyword(name) else name


def encode_arguments(server, tool, parameters, positional, named):
    """Encodes a call's arguments: as JSON, an object or an array whose values the supervisor assigns to parameters, and the texts of
    decoded results in them."""
    if positional and not named:
        return _encode(positional)
    if len(positional) > len(parameters):
        names = ", ".join(parameters[:NAMES_MAX]) + (", …" if len(parameters) > NAMES_MAX else "") or "none"
        message = f"{tool} takes {len(parameters)} positional arguments but {len(positional)} were given: {names}"
        raise ToolError("invalid_arguments", message, server, tool)
    for parameter, value in zip(parameters, positional):
        if parameter in named:
            raise ToolError("invalid_arguments", f"{tool} got {parameter} twice", server, tool)
        named[parameter] = value
    return _encode(named)


def _encode(arguments):
    return to_json(arguments, strict=True), texts_in(arguments)
