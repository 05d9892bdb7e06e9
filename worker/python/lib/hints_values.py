"""What a value is that code took for another: a dict for a list, text for a value, nothing for something."""

import ast
import difflib
import re
from json import JSONDecodeError
from types import CoroutineType, FunctionType

import lockhouse_sources as sources
import lockhouse_subjects as subjects
from lockhouse_servers import ServerModule
from lockhouse_excerpts import current_line
from lockhouse_subjects import UNKNOWN, clip, keys_of, shape
from lockhouse_values import Text


def for_key(error, message, place):
    wanted = error.args[0] if len(error.args) == 1 and type(error.args[0]) in (str, int) else UNKNOWN
    for subject, node in subjects.of(place, ast.Subscript):
        if type(subject.value) is not dict or subjects.key(node, place.frame) != wanted:
            continue
        near = difflib.get_close_matches(wanted, keys_of(subject.value), 1) if type(wanted) is str else ()
        meant = f"did you mean {clip(near[0])}? " if near else ""
        return f"{meant}{subject.source} is {shape(subject.value)}"
    return None


def for_index(error, message, place):
    for subject, node in subjects.of(place, ast.Subscript):
        if type(subject.value) in (list, tuple):
            count, wanted = len(subject.value), subjects.key(node, place.frame)
            if type(wanted) is int and -count <= wanted < count:
                continue
            if not count:
                return f"{subject.source} is empty: look before you take from it, as with `if {subject.source}:`"
            return f"{subject.source} has {count} items, 0 to {count - 1}"
    return None


def for_value(error, message, place):
    if not isinstance(error, JSONDecodeError):
        return None
    text = error.doc if type(error.doc) is str else str(error.doc)
    if not text.strip():
        return "the text is empty"
    return f"the text is not JSON, and begins with {clip(text)}: use it as text, or look at it before parsing"


def for_type(error, message, place):
    for part, words in _TYPE_ERRORS:
        found = re.search(part, message)
        if found:
            return words(found, place) if callable(words) else words
    return None


def _text_indexed(found, place):
    for subject, node in subjects.of(place, ast.Subscript):
        if isinstance(subject.value, Text):
            return f"{subject.source} is text as the tool answered it; if it is JSON, .json() gives its value"
        if not isinstance(subject.value, str):
            continue
        loop = subjects.loop_over(subject.source, place)
        if loop and type(loop.value) is dict:
            return f"a loop over a dict gives its keys: {loop.source} is {shape(loop.value)}; loop over .values() or .items(), or over one of its lists"
        return f"{subject.source} is {shape(subject.value)}"
    return None


def _indexed(found, place):
    for subject, node in subjects.of(place, ast.Subscript):
        if subject.value is None:
            return f"{subject.source} is None here: look before you take from it, as with `if ... is not None:`"
        if type(subject.value) is CoroutineType:
            return f"await is missing: write `(await {subject.source})[...]`"
        if type(subject.value) in (list, tuple):
            return f"{subject.source} is {shape(subject.value)}; take one of them by its number, or loop over them"
        if subject.value is not UNKNOWN and not isinstance(subject.value, (str, dict)):
            return f"{subject.source} is {shape(subject.value)}"
    return "await is missing" if "coroutine" in found[0] else None


def _iterated(found, place):
    if "coroutine" in found[0]:
        return "await is missing: write `await` before the call"
    for subject, _ in subjects.of(place, (ast.For, ast.comprehension)):
        return f"{subject.source} is {shape(subject.value)}" if subject.value is not UNKNOWN else None
    return None


def _called(found, place):
    for subject, _ in subjects.of(place, ast.Call):
        if isinstance(subject.value, ServerModule):
            return f"{subject.source} is an MCP server: call one of its tools, as in {subject.source}.{_first_tool(subject.value)}(...)"
        if type(subject.value) in (dict, list, tuple, Text, str):
            return f"{subject.source} is {shape(subject.value)}: take from it with [...]"
        return f"{subject.source} is {shape(subject.value)}" if subject.value is not UNKNOWN else None
    return None


def _first_tool(server):
    return next(iter(dir(server)), "tool")


def _misused(found, place):
    """How a function of the code is defined that was called otherwise."""
    function = place.frame and {**place.frame.f_globals, **place.frame.f_locals}.get(found[1].partition(".")[0])
    if isinstance(function, type):
        function = type.__dict__["__dict__"].__get__(function).get(found[1].rpartition(".")[2])
    if type(function) is not FunctionType or not sources.is_current(function.__code__.co_filename):
        return None
    number = function.__code__.co_firstlineno
    return f"line {number} says: {current_line(number).strip()[:200]}"


_TYPE_ERRORS = (
    (r"^string indices must be integers", _text_indexed),
    (r"'NoneType' object is not subscriptable|indices must be integers or slices|'\w+' object is not subscriptable", _indexed),
    (r"'(\w+)' object is not (?:an )?(?:async )?itera", _iterated),
    (r"object (\w+) can't be used in 'await' expression",
     "it is a value already, and no await is needed; functions to await are in mcp_tools.aio"),
    (r"' object is not callable", _called),
    (r"^([\w.]+)\(\) (?:missing|takes|got)", _misused),
    (r"can only concatenate str|must be str, not", 'write an f-string, f"{a}{b}", or str(value)'),
    (r"is not JSON serializable", "return or pass the value itself: dates, sets, dataclasses and Decimal become JSON here without json.dumps"),
    (r"the JSON object must be str", "it is a value already: use it as it is"),
    (r"cannot be passed to a tool", "pass text, numbers, booleans, None, lists and dicts of them, dates, bytes or dataclasses"),
    (r"unhashable type: '(list|dict|set)'", "keys of dicts and members of sets must not change: use a tuple or text"),
)
