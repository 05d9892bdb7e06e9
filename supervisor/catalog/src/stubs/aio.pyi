"""The tools as async functions: `from mcp_tools.aio import github`, then `await github.list_issues(...)`."""

from types import ModuleType
from typing import Any

async def call_tool(
    server: object, tool: str | dict[str, Any] | None = ..., arguments: Any = ..., /, **named: Any
) -> Any:
    """Calls a tool by name, as `mcp_tools.call_tool` does."""

async def list_resources(server: str | ModuleType) -> list[dict[str, Any]]: ...
async def read_resource(server: str | ModuleType, uri: str) -> Any: ...
async def list_prompts(server: str | ModuleType) -> list[dict[str, Any]]: ...
async def get_prompt(
    server: str | ModuleType, name: str, arguments: dict[str, str] | None = ..., /, **named: str
) -> dict[str, Any]: ...
