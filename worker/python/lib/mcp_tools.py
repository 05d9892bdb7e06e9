"""The tools of the MCP servers as Python functions.

    from mcp_tools import search_tools
    from mcp_tools.github import list_issues
"""

import sys as _sys
from types import ModuleType as _ModuleType

import _lockhouse
from lockhouse_calls import ToolError, ask, call, known_servers, unwrap_reply, find_server
from lockhouse_calls import encode_arguments as _encode_arguments, full_name_of as _full_name_of, search_limit as _search_limit, tools_of as _tools_of
from lockhouse_resources import get_prompt, list_prompts, list_resources, read_resource, server_name as _server_name
from lockhouse_servers import server_attribute as _server_attribute, split_flat_name as _split_flat_name
from lockhouse_streams import flush, require_room
from lockhouse_decoded import is_decoded as _is_decoded, raw_text
from lockhouse_results import full_result, stored_value
from lockhouse_values import Blob, Server, Text

__path__ = []
__all__ = [
    "Blob", "Text", "ToolError", "call_tool", "describe", "full_result", "get_prompt", "list_prompts", "list_resources", "list_servers",
    "load_result", "raw_text", "read_resource", "search_tools",
]


def __getattr__(name):
    return _server_attribute(__name__, name)


def list_servers():
    """Lists the MCP servers that this code may use: names, each with its `state` and the number of its `tools`."""
    return [Server(row) for row in ask(_lockhouse.list_servers)]


def search_tools(query="", limit=_lockhouse.SEARCH_LIMIT_DEFAULT, detail="signatures", server=None, search=None):
    """Searches permitted tools, best match first. `detail` is "names", "signatures" or "full"; `server` restricts it to one.

    A dict as the only argument contains the arguments by name. Servers that do not connect in time are not searched: a line on
    stderr names them.
    """
    if isinstance(query, dict):
        names = ("query", "limit", "detail", "server", "search")
        return search_tools(**{"limit": limit, "detail": detail, "server": server, **{name: query[name] for name in names if name in query}})
    query = query if search is None else search
    query = " ".join(map(str, query)) if isinstance(query, (list, tuple)) else str(query)
    words = query if server is None else f"server:{find_server(str(server)) or server} {query}"
    found = ask(_lockhouse.search, words, _search_limit(limit), detail)
    for missing in found["missing"]:
        print(f"search_tools: {missing}", file=_sys.stderr)
    return found["tools"]


def describe(server, tool=None):
    """Describes one tool: describe("github", "list_issues"), describe("github.list_issues") or describe(list_issues).

    With a server alone, describe("github"), its state and the instructions that it gives.
    """
    if tool is None and isinstance(server, (str, _ModuleType)) and find_server(_server_name(server)):
        return ask(_lockhouse.describe, _server_name(server))
    return ask(_lockhouse.describe, *_server_and_tool(server, tool))


def load_result(handle):
    """Loads a stored result that was too long to be shown: the value, or the printed text."""
    flush()
    require_room()
    return unwrap_reply(stored_value, _lockhouse.load_result(str(handle)))


def call_tool(server=None, tool=None, arguments=None, /, **named):
    """Calls a tool by name: call_tool("github", "list_issues", {...}) or call_tool("github.list_issues", owner="a").

    Also in the forms of MCP clients: call_tool({"name": "github.list_issues", "arguments": {...}}), and the same as named arguments.

    `timeout=` is the time limit in seconds, instead of the server's configured one. An argument of the tool that is
    named `timeout` must be passed in the dict.
    """
    return call(*_parse_call(server, tool, arguments, named))


def _parse_call(server, tool, arguments, named):
    """Returns server, tool, JSON arguments and timeout for any form of `call_tool`."""
    if isinstance(server, dict) and not _is_decoded(server):
        parts = dict(server)
        server, tool, arguments = _client_form(parts)
        if parts:
            raise ToolError("invalid_arguments", f"call_tool takes no {next(iter(parts))!r} beside the name: put it into \"arguments\"")
    elif server is None:
        server, tool, arguments = _client_form(named)
    if tool is not None and (not isinstance(tool, str) or tool.lstrip()[:1] == "{"):
        tool, arguments = None, tool
    server, tool = _server_and_tool(server, tool)
    timeout = named.pop("timeout", None) if _is_call_timeout(server, tool, arguments, named) else None
    if arguments is None and [*named] == ["arguments"] and not _has_parameter(server, tool, "arguments"):
        arguments = named.pop("arguments")
    # Names that come from a server must not become the names of arguments, and those in a text may.
    if _is_decoded(arguments) or isinstance(arguments, str):
        arguments = [arguments]
    if isinstance(arguments, (list, tuple)):
        return server, tool, _encode_arguments(server, tool, (), arguments, named), timeout
    return server, tool, _encode_arguments(server, tool, (), (), {**(arguments or {}), **named}), timeout


def _client_form(parts):
    """Takes server, tool and arguments out of the parts of a call in the form of MCP clients."""
    server, tool, name = (parts.pop(key, None) for key in ("server", "tool", "name"))
    tool = name if tool is None else tool
    if tool is None:
        raise ToolError("invalid_arguments", 'call_tool needs the name of a tool: write call_tool("server.tool", {...})')
    return (tool, None, parts.pop("arguments", None)) if server is None else (server, tool, parts.pop("arguments", None))


def _is_call_timeout(server, tool, arguments, named):
    """Whether `timeout=` is the timeout of the call. Without a dict it may be an argument of the tool."""
    return "timeout" in named and (arguments is not None or not _has_parameter(server, tool, "timeout"))


def _has_parameter(server, tool, name):
    """Whether a tool is known to have this parameter."""
    rows = _tools_of(server).values() if server in known_servers() else ()
    return any(row["name"] == tool and name in row.get("parameters", ()) for row in rows)


def _server_and_tool(server, tool):
    """Returns server and tool for any form in which they can be given."""
    if tool is None:
        server, tool = getattr(server, "tool", None) or _split_name(str(server))
    return find_server(server) or server, tool


def _split_name(name):
    found = _split_flat_name(name)
    if found:
        return found
    mark = "__" if name.startswith("mcp__") else "."
    server, found, tool = name.removeprefix("mcp__").partition(mark)
    if not found:
        raise ToolError("unknown_tool", f"{name!r} names no tool; write {_full_name_of(name) or 'server.tool'!r}")
    return server, tool


# Aliases with the names that similar products use.

def call_mcp_tool(name, arguments=None, /, **named):
    """Calls a tool by name: call_mcp_tool("mcp__github__list_issues", {...})."""
    return call_tool(name, None, arguments, **named)


def discover_mcp_tools(options=None, *, search=None):
    """Searches permitted tools, with their schemas: discover_mcp_tools(search=["issues"]). Without words, returns all tools."""
    if isinstance(options, dict):
        options = options.get("search")
    words = search or options
    if words:
        query = words if isinstance(words, str) else " ".join(map(str, words))
        found = search_tools(query, _lockhouse.SEARCH_LIMIT_MAX, "full")
    else:
        found = [describe(server, row["name"]) for server in known_servers() for row in _list_or_empty(server)]
    return [_with_schema(row) for row in found]


def get_tool_schema(name):
    """Name, description and JSON schema of a tool: get_tool_schema("mcp__github__list_issues")."""
    return _with_schema(describe(name))


def _list_or_empty(server):
    try:
        return ask(_lockhouse.list_tools, server)
    except ToolError:
        return ()  # An unavailable server must not hide the tools of others.


def _with_schema(tool):
    name = f"mcp__{tool['server']}__{tool.get('tool') or tool['name']}"
    return {**tool, "name": name, "parameters": tool.get("inputSchema")}


callMCPTool, discoverMCPTools, getToolSchema = call_mcp_tool, discover_mcp_tools, get_tool_schema
