"""Hints for values of unexpected types: a dict instead of a list, text instead of a value, or None."""

import ast
import difflib
import re
from json import JSONDecodeError
from types import CoroutineType, FunctionType, ModuleType

import lockhouse_sources as sources
import lockhouse_expressions as expressions
from lockhouse_hints_async import hint_for_values
from lockhouse_servers import ServerModule
from lockhouse_excerpts import current_line
from lockhouse_expressions import UNKNOWN, clip, keys_of, shape
from lockhouse_decoded import plain_type
from lockhouse_values import Blob, Text


def hint_for_key(error, message, location):
    key = error.args[0] if len(error.args) == 1 and type(error.args[0]) in (str, int) else UNKNOWN
    if message.startswith("slice("):  # Since Python 3.12.
        return _hint_for_slice(None, location)
    for expression, node in expressions.failing(location, ast.Subscript):
        if plain_type(expression.value) is not dict or expressions.subscript_key(node, location.frame) != key:
            continue
        near = difflib.get_close_matches(key, keys_of(expression.value), 1) if type(key) is str else ()
        suggestion = f"did you mean {clip(near[0])}? " if near else ""
        return f"{suggestion}{expression.source} is {shape(expression.value)}"
    return None


def hint_for_index(error, message, location):
    for expression, node in expressions.failing(location, ast.Subscript):
        if plain_type(expression.value) in (list, tuple):
            count, key = len(expression.value), expressions.subscript_key(node, location.frame)
            if type(key) is int and -count <= key < count:
                continue
            if not count:
                return f"{expression.source} is empty: look before you take from it, as with `if {expression.source}:`"
            return f"{expression.source} has {count} items, 0 to {count - 1}"
    return None


def hint_for_value(error, message, location):
    if message.startswith("a coroutine was expected"):
        return hint_for_values(location)
    if message.startswith("Unknown format code"):
        return _hint_for_number(location)
    if not isinstance(error, JSONDecodeError):
        return None
    text = error.doc if type(error.doc) is str else str(error.doc)
    if not text.strip():
        return "the text is empty"
    return f"the text is not JSON, and begins with {clip(text)}: use it as text, or look at it before parsing"


def hint_for_type(error, message, location):
    words = hint_for_values(location) or _hint_for_blob(message, location) or _hint_for_number(location)
    if words:
        return words
    for part, words in _TYPE_ERRORS:
        found = re.search(part, message)
        if found:
            return words(found, location) if callable(words) else words
    return None


def _hint_for_blob(message, location):
    """What to pass where bytes are needed and a Blob was passed."""
    for _, node in expressions.failing(location, ast.Call) if "'Blob'" in message else ():
        for argument in node.args:
            if type(expressions.value_of(argument, location.frame)) is Blob:
                name = expressions.source_of(argument)
                return f"{name} is a Blob: its bytes are {name}.data, decoded already"
    return None


def _hint_for_number(location):
    """What to write for the text of a tool that was used as a number."""
    for node in expressions.nodes(location, (ast.BinOp, ast.Compare, ast.Call, ast.FormattedValue)):
        for part in ast.iter_child_nodes(node):
            value = expressions.value_of(part, location.frame)
            if isinstance(value, Text) and _NUMBER.fullmatch(value):
                return f"{expressions.source_of(part)} is text, as the tool answered it: write float({expressions.source_of(part)})"
    return None


_NUMBER = re.compile(r"\s*[-+]?\d+(?:\.\d+)?\s*")


def _hint_for_text_subscript(found, location):
    for expression, node in expressions.failing(location, ast.Subscript):
        if isinstance(expression.value, Text):
            return f"{expression.source} is text as the tool answered it; if it is JSON, .json() gives its value"
        if not isinstance(expression.value, str):
            continue
        loop = expressions.loop_source(expression.source, location)
        if loop and plain_type(loop.value) is dict:
            return f"a loop over a dict gives its keys: {loop.source} is {shape(loop.value)}; loop over .values() or .items(), or over one of its lists"
        return f"{expression.source} is {shape(expression.value)}"
    return None


def _hint_for_subscript(found, location):
    for expression, node in expressions.failing(location, ast.Subscript):
        if expression.value is None:
            return f"{expression.source} is None here: look before you take from it, as with `if ... is not None:`"
        if type(expression.value) is CoroutineType:
            return f"await is missing: write `(await {expression.source})[...]`"
        if plain_type(expression.value) in (list, tuple):
            return f"{expression.source} is {shape(expression.value)}; take one of them by its number, or loop over them"
        if expression.value is not UNKNOWN and not isinstance(expression.value, (str, dict)):
            return f"{expression.source} is {shape(expression.value)}"
    return "await is missing" if "coroutine" in found[0] else None


def _hint_for_slice(found, location):
    """A part was taken from a dict by position."""
    subscripts = expressions.failing(location, ast.Subscript)
    return next((f"{expression.source} is {shape(expression.value)}" for expression, _ in subscripts if plain_type(expression.value) is dict), None)


def _hint_for_iteration(found, location):
    if "coroutine" in found[0]:
        return "await is missing: write `await` before the call"
    for expression, _ in expressions.failing(location, (ast.For, ast.comprehension)):
        return f"{expression.source} is {shape(expression.value)}" if expression.value is not UNKNOWN else None
    return None


def _hint_for_call(found, location):
    for expression, _ in expressions.failing(location, ast.Call):
        if isinstance(expression.value, ServerModule):
            return f"{expression.source} is an MCP server: call one of its tools, as in {expression.source}.{_first_tool(expression.value)}(...)"
        if plain_type(expression.value) in (dict, list, tuple, Text, str):
            return f"{expression.source} is {shape(expression.value)}: take from it with [...]"
        if isinstance(expression.value, ModuleType):
            return _hint_for_module(expression)
        return f"{expression.source} is {shape(expression.value)}" if expression.value is not UNKNOWN else None
    return None


def _hint_for_module(expression):
    """How to call the function of a module that has its name."""
    name = expression.value.__name__
    own = name.rpartition(".")[2]
    if own not in vars(expression.value):
        return f"{expression.source} is a module: call one of its functions"
    return f"{expression.source} is a module: write `from {name} import {own}` first"


def _first_tool(server):
    return next(iter(dir(server)), "tool")


def _hint_for_signature(found, location):
    """Shows the definition of a function of the program that was called with the wrong arguments."""
    function = location.frame and {**location.frame.f_globals, **location.frame.f_locals}.get(found[1].partition(".")[0])
    if isinstance(function, type):
        function = type.__dict__["__dict__"].__get__(function).get(found[1].rpartition(".")[2])
    if type(function) is not FunctionType or not sources.is_current(function.__code__.co_filename):
        return None
    number = function.__code__.co_firstlineno
    return f"line {number} says: {current_line(number).strip()[:200]}"


_TYPE_ERRORS = (
    (r"^string indices must be integers", _hint_for_text_subscript),
    (r"'NoneType' object is not subscriptable|indices must be integers or slices|'\w+' object is not subscriptable", _hint_for_subscript),
    (r"'(\w+)' object is not (?:an )?(?:async )?itera", _hint_for_iteration),
    (r"object (\w+) can't be used in 'await' expression",
     "it is a value already, and no await is needed; functions to await are in mcp_tools.aio"),
    (r"' object is not callable", _hint_for_call),
    (r"^([\w.]+)\(\) (?:missing|takes|got)", _hint_for_signature),
    (r"can only concatenate str|must be str, not", 'write an f-string, f"{a}{b}", or str(value)'),
    (r"is not JSON serializable", "return or pass the value itself: dates, sets, dataclasses and Decimal become JSON here without json.dumps"),
    (r"the JSON object must be str", "it is a value already: use it as it is"),
    (r"cannot be passed to a tool", "pass text, numbers, booleans, None, lists and dicts of them, dates, bytes or dataclasses"),
    (r"unhashable type: 'slice'", _hint_for_slice),
    (r"unhashable type: '(list|dict|set)'", "keys of dicts and members of sets must not change: use a tuple or text"),
)
