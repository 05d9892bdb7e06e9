"""Converts replies of tools to Python values."""

import base64
import binascii

from lockhouse_decoded import decode
from lockhouse_values import Blob, Text, TextResource, parse


def stored_value(data):
    """Parses a stored result."""
    value = parse(data)
    return Text(value) if type(value) is str else value


def from_envelope(data):
    """Converts the result of a tool call: structured content, else text, else the content blocks. The supervisor sets `decode`
    if text that is JSON shall be decoded, and `list` if even a single text becomes a list."""
    envelope = parse(data)
    if "structured" in envelope:
        value = envelope["structured"]
        return Text(value) if type(value) is str else value
    as_text = decode if envelope.get("decode") else Text
    if "text" in envelope:
        values = [as_text(envelope["text"])]
    else:
        values = [_block(block, as_text) for block in envelope.get("content", ())]
    return values[0] if len(values) == 1 and not envelope.get("list") else values


def resource_value(data):
    """Converts a read resource: its only part, or a list of parts."""
    parts = [_resource(part) for part in parse(data)["contents"]]
    return parts[0] if len(parts) == 1 else parts


def prompt_value(data):
    """Converts a prompt."""
    prompt = parse(data)
    messages = [{**message, "content": _block(message.get("content"), Text)} for message in prompt["messages"]]
    return {"description": prompt["description"], "messages": messages}


def _block(block, as_text):
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


def _blob(data, part):
    try:
        mime_type = part.get("mimeType") or "application/octet-stream"
        return Blob(base64.b64decode(data), mime_type, uri=part.get("uri"))
    except binascii.Error:
        return part
