"""The MCP servers' tools, as Python: a module per server, a function per permitted tool."""

from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal

class ToolError(Exception):
    """A tool call, or a question about tools, that failed."""

    #: Such as "denied", "invalid_arguments", "unknown_tool", "rate_limited", "timeout" or "tool_failed".
    code: str
    message: str
    server: str | None
    tool: str | None
    retryable: bool
    def __init__(
        self, code: str, message: str, server: str | None = ..., tool: str | None = ..., retryable: bool = ...
    ) -> None: ...

class Text(str):
    """Text as a tool answered it; never guessed to be JSON."""

    def json(self) -> Any:
        """The value that this text is the JSON of."""

class Blob:
    """Bytes as a tool answered them: an image, a sound, a file."""

    data: bytes
    mime_type: str | None
    uri: str | None
    def __init__(self, data: bytes, mime_type: str | None, uri: str | None = ...) -> None: ...
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

class Server(str):
    """The name of an MCP server."""

    #: Such as "connected", "connecting", "idle" or "failed".
    state: str
    #: How many of its tools are permitted.
    tools: int

def list_servers() -> list[Server]:
    """The MCP servers this code may use: names, each with its `state` and the number of its `tools`."""

def search_tools(
    query: str,
    limit: int = 10,
    detail: Literal["names", "signatures", "full"] = "signatures",
    server: str | None = None,
) -> list[dict[str, Any]]:
    """Permitted tools that match, best first. `server` restricts it to one."""

def describe(server: object, tool: str | None = None) -> dict[str, Any]:
    """One tool in full: describe("github", "list_issues"), describe("github.list_issues") or describe(list_issues)."""

def call_tool(
    server: object, tool: str | dict[str, Any] | None = ..., arguments: Any = ..., /, **named: Any
) -> Any:
    """Calls a tool by name: call_tool("github", "list_issues", {...}) or call_tool("github.list_issues", owner="a").

    `timeout=` is how many seconds to wait.
    """

def load_result(handle: str) -> Any:
    """A result that was too long to be shown, whole: the value, or the text that was printed."""

def list_resources(server: str | ModuleType) -> list[dict[str, Any]]:
    """The permitted resources of a server, as dicts with `uri` and `name`; templates have `uriTemplate` instead."""

def read_resource(server: str | ModuleType, uri: str) -> Any:
    """A resource by its URI: a str for text, a Blob for bytes; a list for several."""

def list_prompts(server: str | ModuleType) -> list[dict[str, Any]]:
    """The permitted prompts of a server, as dicts with `name` and `arguments`."""

def get_prompt(
    server: str | ModuleType, name: str, arguments: dict[str, str] | None = ..., /, **named: str
) -> dict[str, Any]:
    """A prompt: a dict with `messages`, each with `role` and `content`."""

def call_mcp_tool(name: str, arguments: dict[str, Any] | None = ..., /, **named: Any) -> Any:
    """Calls a tool by name: call_mcp_tool("mcp__github__list_issues", {...})."""

def discover_mcp_tools(
    options: dict[str, Any] | Iterable[str] | None = ..., *, search: Iterable[str] | None = ...
) -> list[dict[str, Any]]:
    """Permitted tools that match any of the words: discover_mcp_tools(search=["issues"]). Without words: all."""

def get_tool_schema(name: str) -> dict[str, Any]:
    """Name, description and JSON schema of a tool: get_tool_schema("mcp__github__list_issues")."""

callMCPTool = call_mcp_tool
discoverMCPTools = discover_mcp_tools
getToolSchema = get_tool_schema
