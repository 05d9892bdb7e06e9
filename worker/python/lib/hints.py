"""Advice for common mistakes, and explanations of errors that the sandbox causes."""

import difflib
import errno
from types import ModuleType

import lockhouse_files as files
import lockhouse_hints_names as names
import lockhouse_hints_values as values
from lockhouse_calls import ToolError
from lockhouse_refusals import (
    DEBUGGER, ENVIRONMENT, FILES, NATIVE_FILES, NETWORK, PACKAGES, PARALLEL, PREFIX, SYSTEM, missing_module_reason,
)
from lockhouse_expressions import results_so_far
from lockhouse_hints_syntax import hint_for_syntax

_DATABASE = (f"{PREFIX}: SQLite itself opens no files of the host and none in memory: open each database with "
             "sqlite3.connect(path), without ATTACH")
_READ_DATABASE = (f"{PREFIX}: SQLite works on a copy of a database of the host, and cannot change it there; copy it to /tmp with shutil.copy, "
                  "change the copy, close the connection, and copy it back instead")
_LOCALES = f"{PREFIX}: the C locale is the only one; format with f-strings instead"
_THREADS = (f"{PREFIX}: threads are limited to some 200, and their stacks count as memory; use fewer, as with "
            "ThreadPoolExecutor(32), or asyncio instead")
_ENCODINGS = f"{PREFIX}: the common encodings alone are loaded; use utf-8 instead"
_LIMITS = f"{PREFIX}: limits are set under [limits] in the configuration; use less, or ask an administrator"

# Errors whose message does not mention the sandbox: class, part of the message, explanation.
_UNCLEAR_ERRORS = (
    ("OperationalError", "unable to open database", _DATABASE),
    ("OperationalError", "attempt to write a readonly database", _READ_DATABASE),
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
# Explanations by library, for errors that do not say what was refused.
_MODULES = {"multiprocessing": PARALLEL, "concurrent": PARALLEL, "urllib": NETWORK, "http": NETWORK, "sqlite3": _DATABASE}
_NAMES_MAX = 8
_INSTALLERS = ("!", "%", "pip ", "pip3 ", "python -m pip ")


# Errors for which the structure of the results so far is a hint.
_ABOUT_VALUES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def sandbox_explanation(error, message):
    """Explains an error that the sandbox causes; None for other errors, and for messages with an explanation."""
    if PREFIX in message or isinstance(error, ToolError):
        return None
    if isinstance(error, OSError) and (error.errno == errno.EPERM or "[Errno 1] " in message):
        return NATIVE_FILES if getattr(error, "filename", None) else _library_explanation(error.__traceback__) or SYSTEM
    if isinstance(error, SyntaxError):
        return PACKAGES if str(error.text).lstrip().startswith(_INSTALLERS) else None
    if isinstance(error, AttributeError) and isinstance(getattr(error, "obj", None), ModuleType):
        return missing_module_reason(f"{error.obj.__name__}.{error.name}")
    names = {base.__name__ for base in type(error).__mro__}
    return next((words for name, part, words in _UNCLEAR_ERRORS if name in names and part in message), None)


def _library_explanation(trace):
    """Explanation for the first library in this list that the traceback passes through."""
    while trace is not None:
        words = _MODULES.get(str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0])
        if words is not None:
            return words
        trace = trace.tb_next
    return None


def hint(error, message, location):
    """Returns advice for common errors, or None. Never raises."""
    if PREFIX in message:
        return None
    try:
        for kind, words in _HINTS:
            if isinstance(error, kind):
                found = words(error, message, location)
                break
        else:
            found = None
        return found or (results_so_far() if isinstance(error, _ABOUT_VALUES) else None)
    except Exception:
        return None  # Values of the code may be in a state that cannot be inspected.


def _hint_for_runtime(error, message, location):
    if "cannot be called from a running event loop" in message or "event loop is already running" in message:
        return "top-level await works here: write `await main()` instead of loop.run_until_complete(main())"
    return None


def _hint_for_file(error, message, location):
    path = error.filename
    if type(path) is not str or files.is_of_host(path):
        return None
    beside = files.names_beside(path)
    near = difflib.get_close_matches(path.rpartition("/")[2], beside, 1)
    if near:
        return f"did you mean {near[0]}?"
    if beside:
        return f"the directory has {', '.join(beside[:_NAMES_MAX])}{' and others' if len(beside) > _NAMES_MAX else ''}"
    return "a program begins without files: write the file first; files of the host are not in memory"


def _hint_for_tool(error, message, location):
    return "the same call may succeed later" if error.retryable else None


_HINTS = (
    (SyntaxError, hint_for_syntax),
    (NameError, names.hint_for_name),
    (KeyError, values.hint_for_key),
    (IndexError, values.hint_for_index),
    (AttributeError, names.hint_for_attribute),
    (ImportError, names.hint_for_import),
    (TypeError, values.hint_for_type),
    (ToolError, _hint_for_tool),
    (ValueError, values.hint_for_value),
    (FileNotFoundError, _hint_for_file),
    (MemoryError, lambda *_: "work on smaller pieces, or let the tool filter"),
    (RecursionError, lambda *_: "write it as a loop, with a list as the stack; sys.setrecursionlimit(10_000) allows somewhat more"),
    (RuntimeError, _hint_for_runtime),
    (SystemExit, lambda *_: "end the program with an expression, which is its result, or raise an error that says why"),
)
