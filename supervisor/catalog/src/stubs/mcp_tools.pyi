"""The tools of MCP servers in Python: one module per server, one function per permitted tool."""

from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal

class ToolError(Exception):
    """The error of a failed tool call, search or other request."""

    #: The kind of failure, such as "denied", "invalid_arguments", "unknown_tool", "rate_limited", "timeout" or "tool_failed".
    code: str
    message: str
    server: str | None
    tool: str | None
    retryable: bool
    def __init__(
        self, code: str, message: str, server: str | None = ..., tool: str | None = ..., retryable: bool = ...
    ) -> None: ...

class Text(str):
    """Text content of a tool result."""

    def json(self) -> Any:
        """Parses the text as JSON."""

class Blob:
    """Binary content of a tool result: an image, audio or a file."""

    data: bytes
    mime_type: str | None
    uri: str | None
    def __init__(self, data: bytes, mime_type: str | None, uri: str | None = ...) -> None: ...
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

class Server(str):
    """The name of an MCP server, with its state."""

    #: The state of the connection, such as "connected", "connecting", "idle" or "failed".
    state: str
    #: The number of permitted tools.
    tools: int

def list_servers() -> list[Server]:
    """Returns the MCP servers that this code may use, each with its `state` and the number of its `tools`."""

def search_tools(
    query: str | list[str] | dict[str, Any] = "",
    limit: int = 6,
    detail: Literal["names", "signatures", "full"] = "signatures",
    server: str | None = None,
) -> list[dict[str, Any]]:
    """Returns permitted tools that match the query, best first. `server` restricts the search to one server."""

def describe(server: object, tool: str | None = None) -> dict[str, Any]:
    """Returns the full definition of a tool: describe("github", "list_issues"), describe("github.list_issues") or describe(list_issues).

    With a server alone, describe("github"), its state and the instructions that it gives.
    """

def call_tool(
    server: object, tool: str | dict[str, Any] | None = ..., arguments: Any = ..., /, **named: Any
) -> Any:
    """Calls a tool by name: call_tool("github", "list_issues", {...}) or call_tool("github.list_issues", owner="a").

    `timeout=` is the time limit in seconds.
    """

def load_result(handle: str) -> Any:
    """Returns a truncated result in full: the value, or the printed text."""

def full_result(value: Any) -> dict[str, Any]:
    """Returns everything that a server sent with a result, or with a ToolError: `content`, `structuredContent`, `_meta`."""

def raw_text(value: Any) -> str:
    """Returns the text of a tool result as the server sent it, also if it was JSON text and has been decoded."""

def list_resources(server: str | ModuleType) -> list[dict[str, Any]]:
    """Returns the permitted resources of a server, as dicts with `uri` and `name`; templates have `uriTemplate` instead."""

def read_resource(server: str | ModuleType, uri: str) -> Any:
    """Reads a resource by its URI: a str for text, a Blob for bytes; a list for several."""

def list_prompts(server: str | ModuleType) -> list[dict[str, Any]]:
    """Returns the permitted prompts of a server, as dicts with `name` and `arguments`."""

def get_prompt(
    server: str | ModuleType, name: str, arguments: dict[str, str] | None = ..., /, **named: str
) -> dict[str, Any]:
    """Returns a prompt: a dict with `messages`, each with `role` and `content`."""

def call_mcp_tool(name: str, arguments: dict[str, Any] | None = ..., /, **named: Any) -> Any:
    """Calls a tool by name: call_mcp_tool("mcp__github__list_issues", {...})."""

def discover_mcp_tools(
    options: dict[str, Any] | Iterable[str] | None = ..., *, search: Iterable[str] | None = ...
) -> list[dict[str, Any]]:
    """Returns permitted tools that match any of the words: discover_mcp_tools(search=["issues"]). Without words: all."""

def get_tool_schema(name: str) -> dict[str, Any]:
    """Returns the name, description and JSON Schema of a tool: get_tool_schema("mcp__github__list_issues")."""

callMCPTool = call_mcp_tool
discoverMCPTools = discover_mcp_tools
getToolSchema = get_tool_schema
