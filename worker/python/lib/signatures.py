"""Documentation of tools for `help`, `inspect.signature` and annotations, created on request."""

import inspect
import typing

_TYPE_NAMES = {name: getattr(typing, name) for name in ("Any", "Literal", "NoReturn")}
_TYPE_NAMES |= {"__builtins__": {}, "bool": bool, "dict": dict, "float": float, "int": int, "list": list, "str": str, "unknown": typing.Any}


def signature(described):
    """Signature with parameters in positional order; `...` is the default of optional parameters."""
    parameters = [_parameter(row) for row in described["parameters"]]
    return inspect.Signature(parameters, return_annotation=_return_annotation(described))


def annotations(described):
    """Types of the parameters and of the result."""
    found = {row["keyword"]: _annotation(row["python"]) for row in described["parameters"]}
    return {**found, "return": _return_annotation(described)}


def doc(described):
    """Documentation: signature, the server's description, and all parameters."""
    parts = [described.get("python"), described.get("description") or described.get("summary")]
    if described["parameters"]:
        parts.append("\n".join(["Parameters:", *map(_describe_parameter, described["parameters"])]))
    return "\n\n".join(filter(None, parts))


def _parameter(row):
    default = inspect.Parameter.empty if row["required"] else row.get("default", ...)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(row["keyword"], kind, default=default, annotation=_annotation(row["python"]))


def _return_annotation(described):
    _, arrow, kind = described.get("python", "").rpartition(") -> ")
    return _annotation(kind.partition("  # ")[0]) if arrow else typing.Any


def _annotation(text):
    """Evaluates a type; returns its text if it is not valid in Python."""
    if "{" in text:
        return text
    try:
        return eval(text, _TYPE_NAMES)
    except Exception:
        return text


def _describe_parameter(row):
    name = row["keyword"] if row["keyword"] == row["name"] else f"{row['keyword']} ({row['name']!r})"
    kind = row["python"] if row["required"] else f"{row['python']}, optional"
    default = f" Default: {row['default']!r}." if "default" in row else ""
    words = "\n      ".join(row.get("description", "").split("\n"))
    return f"  {name} ({kind}): {words}{default}".rstrip()
