"""What Python's own means say of a tool: `help`, `inspect.signature`, annotations. Made when somebody asks."""

import inspect
import typing

_NAMES = {name: getattr(typing, name) for name in ("Any", "Literal", "NoReturn")}
_NAMES |= {"__builtins__": {}, "bool": bool, "dict": dict, "float": float, "int": int, "list": list, "str": str}


def signature(described):
    """Parameters in the order of positions; `...` is the default of what may be left out."""
    parameters = [_parameter(row) for row in described["parameters"]]
    return inspect.Signature(parameters, return_annotation=_returned(described))


def annotations(described):
    """Types by the names of parameters, and what comes back."""
    found = {row["keyword"]: _annotation(row["python"]) for row in described["parameters"]}
    return {**found, "return": _returned(described)}


def doc(described):
    """The signature, what the server says of the tool, and each parameter."""
    parts = [described.get("python"), described.get("description") or described.get("summary")]
    if described["parameters"]:
        parts.append("\n".join(["Parameters:", *map(_line, described["parameters"])]))
    return "\n\n".join(filter(None, parts))


def _parameter(row):
    default = inspect.Parameter.empty if row["required"] else row.get("default", ...)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(row["keyword"], kind, default=default, annotation=_annotation(row["python"]))


def _returned(described):
    _, arrow, kind = described.get("python", "").rpartition(") -> ")
    return _annotation(kind.partition("  # ")[0]) if arrow else typing.Any


def _annotation(text):
    """The type, or its text where Python has no words for it."""
    if "{" in text:
        return text
    try:
        return eval(text, _NAMES)
    except Exception:
        return text


def _line(row):
    name = row["keyword"] if row["keyword"] == row["name"] else f"{row['keyword']} ({row['name']!r})"
    kind = row["python"] if row["required"] else f"{row['python']}, optional"
    default = f" Default: {row['default']!r}." if "default" in row else ""
    words = "\n      ".join(row.get("description", "").split("\n"))
    return f"  {name} ({kind}): {words}{default}".rstrip()
