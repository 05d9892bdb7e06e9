"""Values on their way out, as JSON, and on their way in, from what a tool answered."""

import base64
import binascii
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
from itertools import islice
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from uuid import UUID

MAX_DEPTH = 120
MAX_REPR = 1_000
MAX_ITERATED = 10_000

_decode = json.JSONDecoder().decode


class Text(str):
    """Text as a tool answered it; never guessed to be JSON."""

    __slots__ = ()

    def json(self):
        """The value that this text is the JSON of."""
        return _decode(str(self))


class TextResource(Text):
    """Text of a resource, which has a place of its own."""

    __slots__ = ("uri", "mime_type")

    def __new__(cls, text, uri=None, mime_type=None):
        self = super().__new__(cls, text)
        self.uri = uri
        self.mime_type = mime_type
        return self

    def __reduce__(self):
        return TextResource, (str(self), self.uri, self.mime_type)


class Server(str):
    """The name of an MCP server, with its `state` and how many `tools` of it may be used. `server["state"]` is the same."""

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
    """Bytes that are an image, a sound or a file: of a tool's answer, or made by code. As the result of a program, or in it,
    it is shown as what it is. That of a resource has its `uri`."""

    __slots__ = ("data", "mime_type", "name", "uri")

    def __init__(self, data, mime_type="application/octet-stream", name=None, uri=None):
        self.data = bytes(data)
        self.mime_type = str(mime_type)
        self.name = name
        self.uri = uri

    def as_json(self, base64):
        """Its JSON: what the supervisor knows as a file."""
        file = {"base64": base64, "mime_type": self.mime_type}
        return file if self.name is None else {**file, "name": str(self.name)}

    def __bytes__(self):
        return self.data

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return f"Blob({self.mime_type}, {len(self.data)} bytes)"


def parse(data):
    """The value of JSON bytes that the supervisor sent."""
    return _decode(str(data, "utf-8"))


def kept(data):
    """A value that the supervisor kept."""
    value = parse(data)
    return Text(value) if type(value) is str else value


def from_envelope(data):
    """What a call gives to the code: structured content as it is, else text, else the content blocks."""
    envelope = parse(data)
    if "structured" in envelope:
        value = envelope["structured"]
        return Text(value) if type(value) is str else value
    if "text" in envelope:
        return Text(envelope["text"])
    blocks = [_block(block) for block in envelope.get("content", ())]
    return blocks[0] if len(blocks) == 1 else blocks


def contents_of(data):
    """What reading a resource gives to the code: its one part, or a list of them."""
    parts = [_resource(part) for part in parse(data)["contents"]]
    return parts[0] if len(parts) == 1 else parts


def prompt_of(data):
    """What getting a prompt gives to the code."""
    prompt = parse(data)
    messages = [{**message, "content": _block(message.get("content"))} for message in prompt["messages"]]
    return {"description": prompt["description"], "messages": messages}


def _block(block):
    kind = block.get("type")
    if kind == "text":
        return Text(block.get("text", ""))
    if kind == "resource":
        return _resource(block.get("resource", {}))
    data = block.get("data")
    return _blob(data, block) if isinstance(data, str) else block


def _resource(part):
    if isinstance(part.get("blob"), str):
        return _blob(part["blob"], part)
    if isinstance(part.get("text"), str):
        return TextResource(part["text"], part.get("uri"), part.get("mimeType"))
    return part


def _blob(data, part):
    try:
        mime_type = part.get("mimeType") or "application/octet-stream"
        return Blob(base64.b64decode(data), mime_type, uri=part.get("uri"))
    except binascii.Error:
        return part


def to_json(value, strict=False):
    """UTF-8 JSON of any value, as docs/values.md says. `strict` is for arguments: what has no JSON form is refused there,
    not described."""
    encode, _ = _ENCODERS[strict]
    if Server.made and not strict:  # Which the fast way would take for the text that it is, too.
        return _utf8(_ENCODERS[strict][1](_plain(value, strict, 0, set())))
    try:
        data = _utf8(encode(value))
        if not _too_deep(data):
            return data
    except MemoryError:
        raise
    except Exception:
        pass  # A key, a NaN, a cycle, an odd object: the careful way below either converts it or says what is wrong.
    _, encode = _ENCODERS[strict]
    return _utf8(encode(_plain(value, strict, 0, set())))


def _utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:  # Lone surrogates: JSON for others has none.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")


def _too_deep(data):
    """Whether JSON may be nested beyond MAX_DEPTH; brackets within strings may make it say so wrongly."""
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
        plain = {_key(key): _plain(item, strict, depth + 1, around) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        plain = [_plain(item, strict, depth + 1, around) for item in value]
    else:
        plain = _plain(_converted_carefully(value, strict), strict, depth + 1, around)
    around.discard(id(value))
    return plain


def _key(key):
    if key is None or isinstance(key, (str, bool, int)):
        return key
    return str(key if isinstance(key, (float, tuple)) else _converted(key, False))


def _converted_quickly(value, strict):
    """The same, but for what can be read only once: a second try would find it empty."""
    if isinstance(value, Iterator):
        raise TypeError
    return _converted(value, strict)


def _converted_carefully(value, strict):
    """The same where an object's own code may fail."""
    if strict:
        return _converted(value, strict)
    try:
        return _converted(value, strict)
    except MemoryError:
        raise
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__} when it was read>"


def _converted(value, strict):
    """One step from an object towards JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (date, time)):
        return value.isoformat() if value == value else None  # Pandas' NaT is a date, and no other equals not itself.
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
        return _described(value, strict)
    if is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    library = str(getattr(kind, "__module__", "")).partition(".")[0]
    if library in ("numpy", "pandas", "polars"):
        return _table(value, strict)
    if callable(getattr(kind, "model_dump", None)):
        return value.model_dump()
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
    if isinstance(value, BaseException):
        return _error(value)
    if isinstance(value, Iterator):
        return _read(value, strict)
    if kind.__repr__ is object.__repr__ and getattr(value, "__dict__", None):
        return _public(value)
    return _described(value, strict)


_AS_STRINGS = (Decimal, Fraction, UUID, PurePath, timedelta, IPv4Address, IPv6Address, IPv4Network, IPv6Network)


def _public(value):
    return {name: item for name, item in vars(value).items() if not name.startswith("_")}


def _error(error):
    said = {"name": type(error).__name__, "message": str(error), **_public(error)}
    if error.__cause__ is not None:
        said["cause"] = error.__cause__
    return said


def _table(value, strict):
    """Arrays, series and frames, known by their methods so that nothing is imported for them. What is missing is null."""
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if hasattr(value, "to_list") and not hasattr(value, "to_dict"):
        return _without_nan(value.to_list(), value)
    if hasattr(value, "columns") and hasattr(value, "reset_index"):
        frame = value if _counts(value.index) else value.reset_index()
        frame = frame.astype(object).where(frame.notna(), None)
        return frame.to_dict(orient="records")
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        series = value.astype(object).where(value.notna(), None)
        return series.tolist() if _counts(value.index) else series.to_dict()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "kind", None) in ("M", "m", "c"):
        return value.astype(str).tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    return _described(value, strict)


def _counts(index):
    """Whether an index only numbers the rows."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None


def _without_nan(items, of):
    return [None if missing else item for item, missing in zip(items, of.isna())] if hasattr(of, "isna") else items


def _read(iterator, strict):
    """What an iterator gives, as far as that is not without end."""
    items = list(islice(iterator, MAX_ITERATED))
    for _ in iterator:
        if strict:
            raise ValueError(f"an iterator of more than {MAX_ITERATED} items cannot be passed to a tool: make a list of it")
        return [*items, f"… more than {MAX_ITERATED:,} items: the rest of the iterator was not read …"]
    return items


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _described(value, strict):
    if strict:
        raise TypeError(f"a value of type {type(value).__name__} cannot be passed to a tool")
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = text if len(text) <= MAX_REPR else text[:MAX_REPR] + "…"
    return _ADDRESS.sub("", text)


def _encoders(strict):
    """Fast, then careful. Both are bound here, so that code which patches `json` does not change them."""
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    fast = json.JSONEncoder(default=partial(_converted_quickly, strict=strict), **options)
    return fast.encode, json.JSONEncoder(**options).encode


_ENCODERS = {strict: _encoders(strict) for strict in (False, True)}
