"""What to do instead, for the mistakes that people make most, and what the seal has to do with an error."""

import difflib
import errno
import sys
from types import ModuleType

from lockhouse_calls import ToolError, identifier, known_servers
from lockhouse_sealed import (
    DEBUGGER, ENVIRONMENT, FILES, NETWORK, PACKAGES, PARALLEL, PREFIX, SYSTEM, why_missing,
)
from lockhouse_values import Text

_DATABASE = f"{PREFIX}: files cannot be opened; use sqlite3.connect(':memory:') instead"
_LOCALES = f"{PREFIX}: the C locale is the only one; format with f-strings instead"
_THREADS = (f"{PREFIX}: threads are limited to some 200, and their stacks count as memory; use fewer, as with "
            "ThreadPoolExecutor(32), or asyncio instead")
_ENCODINGS = f"{PREFIX}: the common encodings alone are loaded; use utf-8 instead"
_LIMITS = f"{PREFIX}: limits are set under [limits] in the configuration; use less, or ask an administrator"

# Errors that say nothing of their cause: class, part of the message, words.
_RIDDLES = (
    ("OperationalError", "unable to open database file", _DATABASE),
    ("RuntimeError", "Could not determine home directory", ENVIRONMENT),
    ("RuntimeError", "can't start new thread", _THREADS),
    ("NameError", "name '__file__' is not defined", FILES),
    ("KeyError", "uid not found", SYSTEM),
    ("KeyError", "name not found", SYSTEM),
    ("Error", "unsupported locale setting", _LOCALES),
    ("LookupError", "unknown encoding", _ENCODINGS),
    ("ValueError", "not allowed to raise maximum limit", _LIMITS),
    ("PackageNotFoundError", "No package metadata was found", FILES),
    ("BdbQuit", "", DEBUGGER),
)
# What a library is about, where the error does not say what was refused.
_MODULES = {"multiprocessing": PARALLEL, "concurrent": PARALLEL, "urllib": NETWORK, "http": NETWORK, "sqlite3": _DATABASE}
_INSTALLERS = ("!", "%", "pip ", "pip3 ", "python -m pip ")


def truth(error, message):
    """The words for an error that the seal has caused, or None; an error that has them already needs none."""
    if PREFIX in message or isinstance(error, ToolError):
        return None
    if isinstance(error, OSError) and (error.errno == errno.EPERM or "[Errno 1] " in message):
        return FILES if getattr(error, "filename", None) else _about(error.__traceback__) or SYSTEM
    if isinstance(error, SyntaxError):
        return PACKAGES if str(error.text).lstrip().startswith(_INSTALLERS) else None
    if isinstance(error, AttributeError) and isinstance(getattr(error, "obj", None), ModuleType):
        return why_missing(f"{error.obj.__name__}.{error.name}")
    names = {base.__name__ for base in type(error).__mro__}
    return next((words for name, part, words in _RIDDLES if name in names and part in message), None)


def _about(trace):
    """The words of the first well-known library that an error went through."""
    while trace is not None:
        words = _MODULES.get(str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0])
        if words is not None:
            return words
        trace = trace.tb_next
    return None


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
    if isinstance(error, MemoryError):
        return "work on smaller pieces, or let the tool filter"
    if isinstance(error, RecursionError):
        return "write it as a loop, with a list as the stack; sys.setrecursionlimit(10_000) allows somewhat more"
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
