"""The MCP servers' tools, as Python.

    from mcp_tools import search_tools
    from mcp_tools.github import list_issues
"""

import sys as _sys

import _lockhouse
from lockhouse_calls import ToolError, ask, call, identifier, known_servers, read, server_named
from lockhouse_calls import arguments_of as _arguments_of, search_limit as _search_limit, tools_of as _tools_of
from lockhouse_resources import get_prompt, list_prompts, list_resources, read_resource
from lockhouse_servers import server_attribute as _server_attribute
from lockhouse_streams import flush, require_room
from lockhouse_values import Blob, Server, Text, kept

__path__ = []
__all__ = [
    "Blob", "Text", "ToolError", "call_tool", "describe", "get_prompt", "list_prompts", "list_resources", "list_servers",
    "load_result", "read_resource", "search_tools",
]


def __getattr__(name):
    return _server_attribute(__name__, name)


def list_servers():
    """The MCP servers this code may use: names, each with its `state` and the number of its `tools`."""
    return [Server(row) for row in ask(_lockhouse.list_servers)]


def search_tools(query, limit=_lockhouse.SEARCH_LIMIT_DEFAULT, detail="signatures", server=None):
    """Permitted tools that match, best first: "names", "signatures" or "full". `server` restricts it to one.

    Servers that are not connected in time are not searched: a line on stderr names them.
    """
    words = str(query) if server is None else f"server:{server_named(str(server)) or server} {query}"
    found = ask(_lockhouse.search, words, _search_limit(limit), detail)
    for missing in found["missing"]:
        print(f"search_tools: {missing}", file=_sys.stderr)
    return found["tools"]


def describe(server, tool=None):
    """One tool in full: describe("github", "list_issues"), describe("github.list_issues") or describe(list_issues)."""
    return ask(_lockhouse.describe, *_named(server, tool))


def load_result(handle):
    """A result that was too long to be shown, whole: the value, or the text that was printed."""
    flush()
    require_room()
    return read(kept, _lockhouse.load_result(str(handle)))


def call_tool(server, tool=None, arguments=None, /, **named):
    """Calls a tool by name: call_tool("github", "list_issues", {...}) or call_tool("github.list_issues", owner="a").

    `timeout=` is how many seconds to wait, in place of the server's configured time. An argument of the tool that is
    called `timeout` goes into the dict.
    """
    return call(*_request(server, tool, arguments, named))


def _request(server, tool, arguments, named):
    """Server, tool, JSON of the arguments and timeout of `call_tool`, however they were written."""
    if tool is not None and not isinstance(tool, str):
        tool, arguments = None, tool
    server, tool = _named(server, tool)
    timeout = named.pop("timeout", None) if _is_ours(server, tool, arguments, named) else None
    if isinstance(arguments, (list, tuple)):
        return server, tool, _arguments_of(server, tool, (), arguments, named), timeout
    return server, tool, _arguments_of(server, tool, (), (), {**(arguments or {}), **named}), timeout


def _is_ours(server, tool, arguments, named):
    """Whether `timeout=` is meant for the call: without a dict it may be an argument of the tool."""
    if "timeout" not in named or arguments is not None or server not in known_servers():
        return "timeout" in named
    rows = _tools_of(server).values()
    return not any(row["name"] == tool and "timeout" in row.get("parameters", ()) for row in rows)


def _named(server, tool):
    """Server and tool of any of the ways to write them."""
    if tool is None:
        server, tool = getattr(server, "tool", None) or _split(str(server))
    return server_named(server) or server, tool


def _split(name):
    if name.startswith("mcp__"):
        rest = name[5:]
        for server in sorted(known_servers(), key=len, reverse=True):
            for written in (server, identifier(server)):
                if rest.startswith(f"{written}__"):
                    return server, rest[len(written) + 2:]
        server, found, tool = rest.partition("__")
    else:
        server, found, tool = name.partition(".")
    if not found:
        raise ToolError("unknown_tool", f"{name!r} names no tool; write 'server.tool', as in 'github.list_issues'")
    return server, tool


# The same under the names that the tools people come from teach.

def call_mcp_tool(name, arguments=None, /, **named):
    """Calls a tool by name: call_mcp_tool("mcp__github__list_issues", {...})."""
    return call_tool(name, None, arguments, **named)


def discover_mcp_tools(options=None, *, search=None):
    """Permitted tools that match any of the words, with their schemas: discover_mcp_tools(search=["issues"]). Without words: all."""
    if isinstance(options, dict):
        options = options.get("search")
    words = search or options
    if words:
        query = words if isinstance(words, str) else " ".join(map(str, words))
        found = search_tools(query, _lockhouse.SEARCH_LIMIT_MAX, "full")
    else:
        found = [describe(server, row["name"]) for server in known_servers() for row in _listed(server)]
    return [_with_schema(row) for row in found]


def get_tool_schema(name):
    """Name, description and JSON schema of a tool: get_tool_schema("mcp__github__list_issues")."""
    return _with_schema(describe(name))


def _listed(server):
    try:
        return ask(_lockhouse.list_tools, server)
    except ToolError:
        return ()  # A server that is away hides no other.


def _with_schema(tool):
    name = f"mcp__{tool['server']}__{tool.get('tool') or tool['name']}"
    return {**tool, "name": name, "parameters": tool.get("inputSchema")}


callMCPTool, discoverMCPTools, getToolSchema = call_mcp_tool, discover_mcp_tools, get_tool_schema
