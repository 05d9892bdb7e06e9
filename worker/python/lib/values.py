"""Values on their way out, as JSON, and on their way in, from what a tool answered."""

import base64
import binascii
import json
import math
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import PurePath
from uuid import UUID

MAX_DEPTH = 120
MAX_REPR = 1_000

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


class Blob:
    """Bytes as a tool answered them: an image, a sound, a file. Those of a resource have its `uri`."""

    __slots__ = ("data", "mime_type", "uri")

    def __init__(self, data, mime_type, uri=None):
        self.data = data
        self.mime_type = mime_type
        self.uri = uri

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
        return Blob(base64.b64decode(data), part.get("mimeType") or "application/octet-stream", part.get("uri"))
    except binascii.Error:
        return part


def to_json(value, strict=False):
    """UTF-8 JSON of any value. `strict` is for arguments: what has no JSON form is refused there, not described."""
    encode, _ = _ENCODERS[strict]
    try:
        data = _utf8(encode(value))
        if not _too_deep(data):
            return data
    except (TypeError, ValueError, RecursionError):
        pass  # A key, a NaN, a cycle: the careful way below either converts it or says what is wrong.
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
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if id(value) in around:
        raise ValueError("the value contains itself, which JSON cannot express")
    if depth > MAX_DEPTH:
        raise ValueError(f"the value is nested more than {MAX_DEPTH} levels deep")
    around.add(id(value))
    if isinstance(value, dict):
        plain = {_key(key): _plain(item, strict, depth + 1, around) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        plain = [_plain(item, strict, depth + 1, around) for item in value]
    else:
        plain = _plain(_converted(value, strict), strict, depth + 1, around)
    around.discard(id(value))
    return plain


def _key(key):
    if key is None or isinstance(key, (str, bool, int)):
        return key
    return str(key if isinstance(key, (float, tuple)) else _converted(key, False))


def _converted(value, strict):
    """One step from an object towards JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (date, time)):
        return value.isoformat()
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
        return {"base64": text, "mime_type": value.mime_type} if isinstance(value, Blob) else {"base64": text}
    if isinstance(value, (deque, range, KeysView, ValuesView, ItemsView)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas", "polars"):
        return _table(value, strict)
    return _described(value, strict)


_AS_STRINGS = (Decimal, Fraction, UUID, PurePath, timedelta, IPv4Address, IPv6Address, IPv4Network, IPv6Network)


def _table(value, strict):
    """Arrays, series and frames, known by their methods so that nothing is imported for them."""
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if hasattr(value, "to_dict"):
        return value.to_dict(orient="records") if hasattr(value, "columns") else value.to_dict()
    if hasattr(value, "tolist"):
        return value.tolist()
    return _described(value, strict)


def _described(value, strict):
    if strict:
        raise TypeError(f"a value of type {type(value).__name__} cannot be passed to a tool")
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_REPR else text[:MAX_REPR] + "…"


def _encoders(strict):
    """Fast, then careful. Both are bound here, so that code which patches `json` does not change them."""
    options = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    fast = json.JSONEncoder(default=partial(_converted, strict=strict), **options)
    return fast.encode, json.JSONEncoder(**options).encode


_ENCODERS = {strict: _encoders(strict) for strict in (False, True)}
