"""Results of tools that were JSON text: dicts and lists that know the text that the server sent.

A program uses them as values. Where text is needed, it gets the server's own text: from `raw_text`, from `str` as long as the
value is unchanged, and in an argument that must be a string (the supervisor decides that, since it has the schemas).
"""

import functools
import json
import re
from decimal import Decimal
from fractions import Fraction

import lockhouse_values as values
from lockhouse_values import Text, to_json

# Decoded results in the arguments of one call. The supervisor checks each against the schema.
ARGUMENTS_MAX = 64

_MAY_BE_JSON = re.compile(r"[ \t\r\n]*(?:[\[{]|null[ \t\r\n]*\Z)")


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


_parse = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _text_property(self):
    """The text that the server sent; not available if the value has a field of this name."""
    if "text" in self and isinstance(self, dict):
        raise AttributeError
    return raw_text(self)


def _as_text(self):
    text = unchanged_text(self)
    return _PLAIN[type(self)].__repr__(self) if text is None else text


def _format(self, spec):
    return format(_as_text(self), spec)


def _json(self):
    """Returns the value itself: it has been decoded already."""
    return self


def _copy(self):
    plain = _PLAIN[type(self)]
    return plain, (plain(self),)


def _missing_attribute(self, name):
    if hasattr(str, name):
        raise AttributeError(f"this result was JSON text and has been decoded to a {type(self).__name__}; use raw_text(value) for the text")
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _decoded_type(plain):
    """Creates the type of decoded values, with the name of the plain type. Its text is in a slot without a name."""
    members = {
        "__slots__": ("_text",), "__str__": _as_text, "__format__": _format, "__reduce__": _copy, "__getattr__": _missing_attribute,
        "text": property(_text_property), "json": _json, "__module__": "builtins", "__qualname__": plain.__name__,
    }
    decoded = type(plain.__name__, (plain,), members)
    slot = decoded.__dict__["_text"]
    del decoded._text
    return decoded, slot


_Object, _object_text = _decoded_type(dict)
_List, _list_text = _decoded_type(list)
_PLAIN = {_Object: dict, _List: list}
_SLOTS = {_Object: _object_text, _List: _list_text}
_made = False


def decode(text):
    """Decodes text that is, whole, a JSON object, array or null. Other text stays text."""
    global _made
    if not _MAY_BE_JSON.match(text):
        return Text(text)
    try:
        value = _parse(text)
    except (ValueError, RecursionError):
        return Text(text)
    if value is None:
        return None
    value = _Object(value) if type(value) is dict else _List(value)
    _SLOTS[type(value)].__set__(value, text)
    _made = True
    return value


def is_decoded(value):
    """Whether a value was decoded from the text of a result."""
    return type(value) in _PLAIN


def plain_type(value):
    """The type of a value; dict or list for one that was decoded."""
    return _PLAIN.get(type(value), type(value))


def raw_text(value):
    """The text of a tool's result, exactly as the server sent it, also if it was JSON and has been decoded."""
    if isinstance(value, str):
        return value
    if not is_decoded(value):
        raise TypeError("raw_text takes a whole result of a tool that was text; for any other value use json.dumps(value)")
    return Text(_SLOTS[type(value)].__get__(value))


def unchanged_text(value):
    """The text of a decoded value, or None if the program has changed the value."""
    text = _SLOTS[type(value)].__get__(value)
    try:
        return text if to_json(value) == to_json(_parse(text)) else None
    except (ValueError, RecursionError):
        return None


def texts_in(arguments):
    """The values in the arguments of a call that have a text too: pairs of JSON pointer and text. These are decoded results, with the
    text None if the program changed the value, and exact numbers."""
    if not _made and not values.exact_number_seen:
        return []
    texts, pending = [], [("", arguments)]
    while pending:
        pointer, value = pending.pop()
        if is_decoded(value):
            texts.append((pointer, unchanged_text(value)))
            if len(texts) > ARGUMENTS_MAX:
                raise ValueError(f"more than {ARGUMENTS_MAX} decoded results in one call: pass json.dumps(value) or raw_text(value) for each")
        elif isinstance(value, dict):
            names = (name for name in value if isinstance(name, str))
            pending += ((f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", value[name]) for name in names)
        elif isinstance(value, (list, tuple)):
            pending += ((f"{pointer}/{index}", item) for index, item in enumerate(value))
        elif isinstance(value, (Decimal, Fraction)) and len(texts) < ARGUMENTS_MAX:
            texts.append((pointer, str(value)))
    return texts


_loads = json.loads


@functools.wraps(_loads)
def _loads_unless_decoded(s, *args, **named):
    return s if is_decoded(s) else _loads(s, *args, **named)


json.loads = _loads_unless_decoded
