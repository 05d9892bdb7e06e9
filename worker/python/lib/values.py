"""Converts the results of programs and the arguments of calls to JSON."""

import base64
import json
import math
import re
from collections import deque
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from io import BytesIO
from itertools import islice
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from uuid import UUID

# Maximum nesting depth of a value in Python.
# Bound: values and answers.
MAX_DEPTH = 120
MAX_REPR = 1_000
# Maximum number of items that are read of an iterator in a value.
# Bound: values and answers.
MAX_ITERATED = 10_000

_decode = json.JSONDecoder().decode


class Text(str):
    """Text of a tool's result. It is never parsed as JSON automatically."""

    __slots__ = ()

    def json(self):
        """Parses the text as JSON."""
        return _decode(str(self))


class TextResource(Text):
    """Text of a resource, with its URI and MIME type."""

    __slots__ = ("uri", "mime_type")

    def __new__(cls, text, uri=None, mime_type=None):
        self = super().__new__(cls, text)
        self.uri = uri
        self.mime_type = mime_type
        return self

    def __reduce__(self):
        return TextResource, (str(self), self.uri, self.mime_type)


class Server(str):
    """The name of an MCP server, with its `state` and the number of its permitted `tools`; `server["state"]` is equivalent."""

    made = False

    def __new__(cls, row):
        self = super().__new__(cls, row["name"])
        vars(self).update(row)
        cls.made = True
        return self

    def __getitem__(self, key):
        return vars(self)[key] if isinstance(key, str) else super().__getitem__(key)


Server.__module__ = "mcp_tools"


class Blob:
    """Bytes of an image, a sound or a file, from a tool's result or created by code. In the result of a program it is shown
    as what it is. The Blob of a resource has its `uri`."""

    __slots__ = ("data", "mime_type", "name", "uri")

    def __init__(self, data, mime_type="application/octet-stream", name=None, uri=None):
        self.data = bytes(data)
        self.mime_type = str(mime_type)
        self.name = name
        self.uri = uri

    def as_json(self, base64):
        """JSON form, which the supervisor recognizes as a file."""
        file = {"base64": base64, "mime_type": self.mime_type}
        return file if self.name is None else {**file, "name": str(self.name)}

    def __bytes__(self):
        return self.data

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return f"Blob(data=<{len(self.data)} bytes>, mime_type={self.mime_type!r}, name={self.name!r})"


def parse(text):
    """Parses JSON text from the supervisor."""
    return _decode(text)


def to_json(value, strict=False):
    """Encodes any value as UTF-8 JSON, as described in docs/values.md. With `strict`, for arguments, a value without
    a JSON form is an error instead of being described."""
    encode, _ = _ENCODERS[strict]
    if Server.made and not strict:  # The fast encoder would write a Server as plain text.
        return _utf8(_ENCODERS[strict][1](_plain(value, strict, 0, set())))
    try:
        data = _utf8(encode(value))
        if not _too_deep(data):
            return data
    except MemoryError:
        raise
    except Exception:
        pass  # A key, a NaN, a cycle or an unusual object: the careful encoder converts it or explains the error.
    _, encode = _ENCODERS[strict]
    return _utf8(encode(_plain(value, strict, 0, set())))


def _utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:  # Lone surrogates are not valid in JSON.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def _too_deep(data):
    """Whether JSON may be nested deeper than MAX_DEPTH. Brackets in strings can cause false positives."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    marks = data.translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        outer = marks.replace(b"[]", b"")
        if len(outer) == len(marks):
            break
        marks = outer
    return bool(marks)


def _plain(value, strict, depth, around):
    if type(value) is Server and not strict:
        return dict(vars(value))
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if id(value) in around:
        if strict:
            raise ValueError("the value contains itself, which JSON cannot express")
        return "[Circular]"
    if depth > MAX_DEPTH:
        raise ValueError(f"the value is nested more than {MAX_DEPTH} levels deep")
    around.add(id(value))
    if isinstance(value, dict):
        plain = {_json_key(key): _plain(item, strict, depth + 1, around) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        plain = [_plain(item, strict, depth + 1, around) for item in value]
    else:
        plain = _plain(_convert_safely(value, strict), strict, depth + 1, around)
    around.discard(id(value))
    return plain


def _json_key(key):
    if key is None or isinstance(key, (str, bool, int)):
        return key
    return str(key if isinstance(key, (float, tuple)) else _convert(key, False))


def _convert_unless_iterator(value, strict):
    """Converts a value unless it is an iterator, which a second attempt would find empty."""
    if isinstance(value, Iterator):
        raise TypeError
    return _convert(value, strict)


def _convert_safely(value, strict):
    """Converts a value, and describes it if its own methods raise."""
    if strict:
        return _convert(value, strict)
    try:
        return _convert(value, strict)
    except MemoryError:
        raise
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__} when it was read>"


def _convert(value, strict):
    """Converts an object by one step towards JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (date, time)):
        return value.isoformat() if value == value else None  # Pandas' NaT is a date, and the only one that is not equal to itself.
    if strict and isinstance(value, (Decimal, Fraction)):
        return _exact_number(value)
    if isinstance(value, _AS_STRINGS):
        return str(value)
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, (bytes, bytearray, memoryview, Blob)):
        text = base64.b64encode(bytes(value)).decode()
        if strict:
            return text
        return value.as_json(text) if isinstance(value, Blob) else {"base64": text}
    if isinstance(value, (deque, range, KeysView, ValuesView, ItemsView)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    kind = type(value)
    if isinstance(value, type):
        return _describe(value, strict)
    if is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    image = None if strict else _image(value, kind)
    if image is not None:
        return image
    library = str(getattr(kind, "__module__", "")).partition(".")[0]
    if library in ("numpy", "pandas"):
        return _convert_table(value, strict)
    if callable(getattr(kind, "model_dump", None)):
        return value.model_dump()
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
    if isinstance(value, BaseException):
        return _error_fields(value)
    if isinstance(value, Iterator):
        return _read_iterator(value, strict)
    if kind.__repr__ is object.__repr__ and getattr(value, "__dict__", None):
        return _public_attributes(value)
    return _describe(value, strict)


def _image(value, kind):
    """The image of a figure or another object that can draw itself, such as one of matplotlib or Pillow; None for other values."""
    if callable(getattr(kind, "get_figure", None)) and callable(getattr(kind, "plot", None)):
        value = value.get_figure()  # The axes of a figure, which `plot` of pandas returns.
        kind = type(value)
    if callable(getattr(kind, "savefig", None)):
        png = BytesIO()
        value.savefig(png, format="png")
        return Blob(png.getvalue(), "image/png", "figure.png")
    if callable(getattr(kind, "_repr_png_", None)):
        png = value._repr_png_()
        png = png[0] if isinstance(png, tuple) else png
        return Blob(png, "image/png", "image.png") if isinstance(png, bytes) else None
    return None


_AS_STRINGS = (Decimal, Fraction, UUID, PurePath, timedelta, IPv4Address, IPv6Address, IPv4Network, IPv6Network)


# Whether a Decimal or a Fraction was in the arguments of a call.
exact_number_seen = False


def _exact_number(value):
    """A Decimal or a Fraction as an argument: an integer, or the nearest float of a Fraction, or the float with the value of a
    Decimal. Other Decimals become their text, since a float would lose digits."""
    global exact_number_seen
    exact_number_seen = True
    if isinstance(value, Decimal) and (not value.is_finite() or value.adjusted() > _EXPONENT_MAX):
        return str(value)
    whole = int(value)
    if whole == value:
        return whole
    try:
        number = float(value)
    except OverflowError:
        return str(value)
    return number if isinstance(value, Fraction) or Decimal(repr(number)) == value else str(value)


# The largest decimal exponent of a Decimal that becomes an integer. The digits of such an integer are computed.
_EXPONENT_MAX = 400


def _public_attributes(value):
    return {name: item for name, item in vars(value).items() if not name.startswith("_")}


def _error_fields(error):
    result = {"name": type(error).__name__, "message": str(error), **_public_attributes(error)}
    if error.__cause__ is not None:
        result["cause"] = error.__cause__
    return result


def _convert_table(value, strict):
    """Converts arrays, series and frames, detected by their methods so that nothing is imported. Missing values become null."""
    if hasattr(value, "to_list") and not hasattr(value, "to_dict"):
        return _without_nan(value.to_list(), value)
    if hasattr(value, "columns") and hasattr(value, "reset_index"):
        frame = value if _numbers_rows(value.index) else value.reset_index()
        frame = frame.astype(object).where(frame.notna(), None)
        return frame.to_dict(orient="records")
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        series = value.astype(object).where(value.notna(), None)
        return series.tolist() if _numbers_rows(value.index) else series.to_dict()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "kind", None) in ("M", "m", "c"):
        return value.astype(str).tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    return _describe(value, strict)


def _numbers_rows(index):
    """Whether an index only numbers the rows."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None


def _without_nan(items, series):
    return [None if missing else item for item, missing in zip(items, series.isna())] if hasattr(series, "isna") else items


def _read_iterator(iterator, strict):
    """Reads the items of an iterator, up to a maximum."""
    items = list(islice(iterator, MAX_ITERATED))
    for _ in iterator:
        if strict:
            raise ValueError(f"an iterator of more than {MAX_ITERATED} items cannot be passed to a tool: make a list of it")
        return [*items, f"… more than {MAX_ITERATED:,} items: the rest of the iterator was not read …"]
    return items


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _describe(value, strict):
    if strict:
        raise TypeError(f"a value of type {type(value).__name__} cannot be passed to a tool")
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = text if len(text) <= MAX_REPR else text[:MAX_REPR] + "…"
    return _ADDRESS.sub("", text)


def _encoders(strict):
    """Creates the fast and the careful encoder. Binding both here protects them from code that patches `json`."""
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    fast = json.JSONEncoder(default=partial(_convert_unless_iterator, strict=strict), **options)
    return fast.encode, json.JSONEncoder(**options).encode


_ENCODERS = {strict: _encoders(strict) for strict in (False, True)}
