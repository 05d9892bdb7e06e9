"""What a failing expression was about: the value itself, where it can be had without running code of the program, and its shape in
words. Names and types of it are told, and no values but the beginning of a text."""

import ast
import builtins
from types import CoroutineType

from lockhouse_calls import last_answer
from lockhouse_excerpts import whole
from lockhouse_values import Text

_KEYS = 12
_NAME = 40
_SOURCE = 60
UNKNOWN = object()


class Subject:
    """An expression and its value; `UNKNOWN` where only the expression is known."""

    def __init__(self, source, value):
        self.source = source
        self.value = value


def of(place, kind):
    """Of the failing expressions of a kind (`ast.Subscript`, …), innermost first: what each takes a part of, calls or goes over, and
    the expression."""
    for node in _nodes(place, kind):
        inner = getattr(node, "value", None) or getattr(node, "func", None) or getattr(node, "iter", None)
        if inner is not None:
            yield Subject(_source(inner), _value(inner, place.frame)), node


def key(node, frame):
    """The key of a subscript."""
    return _value(node.slice, frame)


def loop_over(name, place):
    """What the loop goes over whose variable that is, as a subject."""
    loops = [node for node in _walk(place) if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))]
    for node in loops:
        if isinstance(node.target, ast.Name) and node.target.id == name and _line(node) <= place.line:
            return Subject(_source(node.iter), _value(node.iter, place.frame))
    return None


def _line(node):
    return getattr(node, "lineno", None) or node.target.lineno


def _walk(place):
    try:
        return list(ast.walk(ast.parse(whole()))) if place.frame is not None else []
    except (SyntaxError, ValueError, RecursionError):
        return []


def _nodes(place, kind):
    """The nodes that fail; without a span all that stand on the line, the innermost first."""
    found = [node for node in _walk(place) if isinstance(node, kind) and node.lineno <= place.line <= node.end_lineno]
    if place.span is not None:
        exact = [node for node in found
                 if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == place.span]
        found = exact or [node for node in found if _is_iter(node, place.span)]
    return sorted(found, key=lambda node: (node.end_lineno, node.end_col_offset, -node.col_offset))


def _is_iter(node, span):
    """A loop fails at what it goes over."""
    inner = getattr(node, "iter", None)
    return inner is not None and (inner.lineno, inner.col_offset) == span[:2]


def _source(node):
    text = " ".join((ast.get_source_segment(whole(), node) or "this").split())
    return text if len(text) <= _SOURCE else f"{text[:_SOURCE]}…"


def _value(node, frame):
    """The value of a name, or of a part of one, as long as only built-in types are asked."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in names:
                return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call):
        return last_answer(_called(node.func), UNKNOWN)
    if isinstance(node, ast.Subscript):
        of, at = _value(node.value, frame), _value(node.slice, frame)
        if type(of) in (dict, list, tuple, Text, str) and type(at) in (str, int):
            try:
                return of[at]
            except (LookupError, TypeError):
                return UNKNOWN
    if isinstance(node, ast.Attribute):
        of = _value(node.value, frame)
        if type(type(of)) is type and type(of).__getattribute__ is object.__getattribute__:
            return getattr(of, "__dict__", {}).get(node.attr, UNKNOWN)
    return UNKNOWN


def _called(function):
    return getattr(function, "id", None) or getattr(function, "attr", None)


def keys_of(value):
    """The keys of a dict that are text."""
    return [name for name in value if type(name) is str][:1_000] if type(value) is dict else []


def shape(value):
    """A value in words: what it is, and what it has."""
    if value is None or type(value) is bool:
        return repr(value)
    if type(value) is dict:
        return f"a dict with the keys {_keys(value)}" if value else "an empty dict"
    if type(value) in (list, tuple):
        kind = type(value).__name__
        if not value:
            return f"an empty {kind}"
        first = value[0]
        items = f"dicts with the keys {_keys(first)}" if type(first) is dict and first else _kind(first)
        return f"a {kind} of {len(value)}: {items}"
    if isinstance(value, str):
        return f"text ({clip(value)})"
    if type(value) is CoroutineType:
        return "a coroutine"
    name = _NAMES(type(value))
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


_NAMES = type.__dict__["__name__"].__get__


def _kind(value):
    if type(value) in (list, tuple):
        return f"{type(value).__name__} of {len(value)}"
    return "None" if value is None else "text" if isinstance(value, str) else _NAMES(type(value))


def _keys(value):
    shown = []
    for name, item in list(value.items())[:_KEYS]:
        nested = f" ({_kind(item)})" if type(item) in (list, dict) else ""
        shown.append(f"{clip(name) if type(name) is str else _NAMES(type(name))}{nested}")
    more = f" and {len(value) - _KEYS} more" if len(value) > _KEYS else ""
    return ", ".join(shown) + more


def clip(text):
    """The beginning of a text, quoted."""
    return repr(str(text[:_NAME])) + ("…" if len(text) > _NAME else "")
