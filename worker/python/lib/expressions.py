"""Finds the failed expression and its value without running code of the program, and describes the value's type and structure.
Messages contain names and types, and of values only the beginning of a text."""

import ast
import builtins
from types import CoroutineType, ModuleType

import lockhouse_sources as sources
from lockhouse_calls import NAMES_MAX, last_result, recent_results
from lockhouse_excerpts import program_text
from lockhouse_decoded import plain_type
from lockhouse_values import Blob, Text

_NAME = 40
_SOURCE = 60
UNKNOWN = object()


class Expression:
    """An expression and its value; the value is `UNKNOWN` if it cannot be determined."""

    def __init__(self, source, value):
        self.source = source
        self.value = value


def failing(location, kind):
    """Yields the operand of each failed expression of a kind (such as `ast.Subscript`), with the node; innermost first."""
    for node in nodes(location, kind):
        inner = getattr(node, "value", None) or getattr(node, "func", None) or getattr(node, "iter", None)
        if inner is not None:
            yield Expression(source_of(inner), value_of(inner, location.frame)), node


def subscript_key(node, frame):
    """The key of a subscript."""
    return value_of(node.slice, frame)


def member_of(name, location):
    """The name after the point where a line uses a name as in `name.member`; None if it does not."""
    found = (node for node in _walk(location) if isinstance(node, ast.Attribute) and node.lineno == location.line)
    return next((node.attr for node in found if isinstance(node.value, ast.Name) and node.value.id == name), None)


def loop_source(name, location):
    """The expression that a loop with this variable iterates over."""
    loops = [node for node in _walk(location) if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))]
    for node in loops:
        if isinstance(node.target, ast.Name) and node.target.id == name and _line(node) <= location.line:
            return Expression(source_of(node.iter), value_of(node.iter, location.frame))
    return None


def _line(node):
    return getattr(node, "lineno", None) or node.target.lineno


def _walk(location):
    try:
        return list(ast.walk(sources.parse(program_text(), location.name))) if location.frame is not None else []
    except (SyntaxError, ValueError, RecursionError):
        return []


def nodes(location, kind):
    """The nodes that failed. Without a span, all nodes on the line, innermost first."""
    found = [node for node in _walk(location) if isinstance(node, kind) and node.lineno <= location.line <= node.end_lineno]
    if location.span is not None:
        exact = [node for node in found
                 if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == location.span]
        found = exact or [node for node in found if _is_iter(node, location.span)]
    return sorted(found, key=lambda node: (node.end_lineno, node.end_col_offset, -node.col_offset))


def _is_iter(node, span):
    """Whether the span is that of the iterated expression, at which a loop fails."""
    inner = getattr(node, "iter", None)
    return inner is not None and (inner.lineno, inner.col_offset) == span[:2]


def source_of(node):
    text = " ".join((ast.get_source_segment(program_text(), node) or "this").split())
    return text if len(text) <= _SOURCE else f"{text[:_SOURCE]}…"


def value_of(node, frame):
    """Evaluates a name, constant or access to a part, as long as only built-in types are involved."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call):
        return last_result(_function_name(node.func), UNKNOWN)
    if isinstance(node, ast.Subscript):
        container, key = value_of(node.value, frame), value_of(node.slice, frame)
        if plain_type(container) in (dict, list, tuple, Text, str) and type(key) in (str, int):
            try:
                return container[key]
            except (LookupError, TypeError):
                return UNKNOWN
    if isinstance(node, ast.Attribute):
        container = value_of(node.value, frame)
        if isinstance(container, ModuleType):
            return vars(container).get(node.attr, UNKNOWN)
        if type(type(container)) is type and type(container).__getattribute__ is object.__getattribute__:
            return getattr(container, "__dict__", {}).get(node.attr, UNKNOWN)
    return UNKNOWN


def _function_name(function):
    return getattr(function, "id", None) or getattr(function, "attr", None)


def keys_of(value):
    """The string keys of a dict."""
    return [name for name in value if type(name) is str][:1_000] if plain_type(value) is dict else []


def shape(value):
    """Describes the type and structure of a value."""
    if value is None or type(value) is bool:
        return repr(value)
    if plain_type(value) is dict:
        return f"a dict with the keys {_keys(value)}" if value else "an empty dict"
    if plain_type(value) in (list, tuple):
        kind = type(value).__name__
        if not value:
            return f"an empty {kind}"
        first = value[0]
        items = f"dicts with the keys {_keys(first)}" if plain_type(first) is dict and first else _kind(first)
        return f"a {kind} of {len(value)}: {items}"
    if isinstance(value, str):
        return f"text ({clip(value)})"
    if type(value) is CoroutineType:
        return "a coroutine"
    if type(value) is Blob:
        return f"a Blob: its bytes are .data, and it has .mime_type ({clip(value.mime_type)}) and .name"
    name = _NAMES(type(value))
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


_RESULTS_CHARS = 300


def results_so_far():
    """Describes the structure of the latest tool results, never their contents; None if there are none."""
    shown = "; ".join(f'"{name}": {_outline(value)}' for name, value in recent_results())
    return f"results so far: {shown}"[:_RESULTS_CHARS] if shown else None


def _outline(value):
    if plain_type(value) is dict:
        return f"object {_record(value)}"
    if plain_type(value) in (list, tuple):
        first = value[0] if value else None
        return f"array of {len(value)} {_record(first)}" if plain_type(first) is dict else f"array of {len(value)}"
    if type(value) is Blob:
        return "Blob {data, mime_type, name}"
    return "null" if value is None else f"text of {len(value)} characters" if isinstance(value, str) else _NAMES(type(value))


def _record(value):
    names = [str(key) for key in list(value)[:NAMES_MAX]]
    return f"{{{', '.join(names + ['…'] * (len(value) > NAMES_MAX))}}}"


_NAMES = type.__dict__["__name__"].__get__


def _kind(value):
    if plain_type(value) in (list, tuple):
        return f"{type(value).__name__} of {len(value)}"
    return "None" if value is None else "text" if isinstance(value, str) else _NAMES(type(value))


def _keys(value):
    shown = []
    for name, item in list(value.items())[:NAMES_MAX]:
        nested = f" ({_kind(item)})" if type(item) in (list, dict) else ""
        shown.append(f"{clip(name) if type(name) is str else _NAMES(type(name))}{nested}")
    more = f" and {len(value) - NAMES_MAX} more" if len(value) > NAMES_MAX else ""
    return ", ".join(shown) + more


def clip(text):
    """The beginning of a text as a string literal."""
    return repr(str(text[:_NAME])) + ("…" if len(text) > _NAME else "")
