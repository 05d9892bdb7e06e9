"""What to do instead, for the mistakes that people make most."""

import difflib
import sys

from lockhouse_calls import ToolError, identifier, known_servers
from lockhouse_values import Text


def hint(error, message):
    """What to do instead, if the error is one that people often meet here."""
    if isinstance(error, SyntaxError) and "'return' outside function" in message:
        return "the last expression is the result; no return is needed"
    if isinstance(error, RuntimeError) and "cannot be called from a running event loop" in message:
        return "top-level await works here: write `await main()` instead of asyncio.run(main())"
    if isinstance(error, NameError):
        return _hint_for_name(getattr(error, "name", None))
    if isinstance(error, AttributeError) and isinstance(getattr(error, "obj", None), Text):
        return "the tool answered text; if it is JSON, .json() gives its value"
    if isinstance(error, LookupError) and "unknown encoding" in message:
        return "only the common encodings are loaded in a sealed worker"
    if isinstance(error, MemoryError):
        return "work on smaller pieces, or let the tool filter"
    if isinstance(error, ToolError) and error.retryable:
        return "the same call may succeed later"
    return None


def _hint_for_name(name):
    for server in known_servers():
        if name in (server, identifier(server)):
            return f"write `import mcp_tools.{identifier(server)} as {identifier(server)}` first"
    if name in sys.modules["mcp_tools"].__all__:
        return f"write `from mcp_tools import {name}` first"
    if name in sys.modules and "." not in name:
        return f"write `import {name}` first"
    names = [known for known in vars(sys.modules["__main__"]) if known[:2] != "__"]
    near = difflib.get_close_matches(str(name), names, 1)
    return f"did you mean {near[0]}?" if near else None
