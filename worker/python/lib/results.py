"""Converts replies of tools to Python values, and keeps what a result has beside its value for `full_result`."""

import base64
import binascii
from collections import deque

from lockhouse_decoded import decode, is_decoded, raw_text
from lockhouse_values import Blob, Text, TextResource, parse

_KEPT_RESULTS = 256
_KEPT_BYTES = 8 << 20
_SHORT = 1_024

# Values of calls with what their results have beside them, and the bytes of these results, the latest first.
_kept = deque()
_kept_bytes = 0
_dropped = False


class MalformedResult(ValueError):
    """A result that the MCP protocol does not permit."""


def stored_value(data):
    """Parses a stored result."""
    value = parse(data)
    return Text(value) if type(value) is str else value


def from_envelope(data):
    """Converts the result of a tool call: structured content, else text, else the content blocks. The supervisor sets `decode`
    if text that is JSON shall be decoded, and `list` if even a single text becomes a list."""
    envelope = parse(data)
    value = _value(envelope)
    if "content" in envelope or "meta" in envelope:
        _keep(value, envelope, len(data))
    elif type(value) not in (dict, list, Text) and not is_decoded(value) and (type(value) is not str or len(value) <= _SHORT):
        _keep(value, envelope, 0)  # An equal value of an earlier call must not be taken for it.
    return value


def _value(envelope):
    if "structured" in envelope:
        value = envelope["structured"]
        return Text(value) if type(value) is str else value
    as_text = decode if envelope.get("decode") else Text
    if "text" in envelope:
        values = [as_text(envelope["text"])]
    else:
        values = [_block(block, as_text) for block in envelope.get("content", ())]
    return values[0] if len(values) == 1 and not envelope.get("list") else values


def _keep(value, envelope, size):
    global _kept_bytes, _dropped
    _kept.appendleft((value, envelope, size))
    _kept_bytes += size
    while len(_kept) > _KEPT_RESULTS or (_kept_bytes > _KEPT_BYTES and len(_kept) > 1):
        _kept_bytes -= _kept.pop()[2]
        _dropped = True


def full_result(value):
    """Everything that a server sent with a result: a dict with its `content` blocks, its `structuredContent` and its `_meta`, as far as
    it has them. `value` is what a call of this program gave, or the ToolError that it raised.

    Blocks are dicts as the server sent them, with a Blob in place of base64. Content that only repeats the structured content is
    left out.
    """
    if isinstance(value, BaseException):
        data = getattr(value, "_result", None)
        return _full(parse(data)) if data else {"content": [_text_block(str(value))]}
    for known, envelope, _ in _kept:
        if known is value:
            return _full(envelope)
    if isinstance(value, str) or is_decoded(value):
        return {"content": [_text_block(str(raw_text(value)))]}
    if _dropped:
        raise LookupError(f"this result is no longer kept: full_result knows the latest {_KEPT_RESULTS} results, up to 8 MiB; use it right after the call")
    return {"content": [], "structuredContent": value}


def _text_block(text):
    return {"type": "text", "text": text}


def _full(envelope):
    full = {}
    if "content" in envelope:
        full["content"] = [_whole_block(block) for block in envelope["content"]]
    else:
        full["content"] = [_text_block(envelope["text"])] if "text" in envelope else []
    if "structured" in envelope:
        full["structuredContent"] = envelope["structured"]
    if "meta" in envelope:
        full["_meta"] = envelope["meta"]
    return full


def _whole_block(block):
    """A block with all of its members, and with bytes in place of base64."""
    if block.get("type") == "resource":
        resource = block["resource"]
        return {**block, "resource": {**resource, "blob": _resource(resource)}} if isinstance(resource.get("blob"), str) else block
    return {**block, "data": _blob(block["data"], block)} if isinstance(block.get("data"), str) else block


def resource_value(data):
    """Converts a read resource: its only part, or a list of parts."""
    parts = [_resource(part) for part in parse(data)["contents"]]
    return parts[0] if len(parts) == 1 else parts


def prompt_value(data):
    """Converts a prompt."""
    prompt = parse(data)
    messages = [{**message, "content": _prompt_content(message.get("content"))} for message in prompt["messages"]]
    return {"description": prompt["description"], "messages": messages}


def _prompt_content(content):
    if isinstance(content, list):
        return [_block(block, Text) for block in content]
    return _block(content, Text)


def _block(block, as_text):
    if not isinstance(block, dict):
        raise MalformedResult("a content block is no object")
    kind = block.get("type")
    if kind == "text":
        return as_text(block.get("text", ""))
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


_URL_ALPHABET = str.maketrans("-_", "+/")


def _blob(data, part):
    """Decodes base64. White space, missing padding and the URL alphabet are accepted, as in TypeScript."""
    mime_type = part.get("mimeType") or "application/octet-stream"
    digits = "".join(data.split()).translate(_URL_ALPHABET).rstrip("=")
    try:
        decoded = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedResult(f"the bytes of type {mime_type} are not valid base64") from None
    return Blob(decoded, mime_type, uri=part.get("uri"))
