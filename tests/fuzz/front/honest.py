"""Requests of an honest client, whose whole answers are compared with what they must be."""

import asyncio
import json
import re

from . import hpack_block, http2, messages
from .sending import TlsWire, Wire

CODE = "print(6*7)"
# Another thread of the front parses messages with programs of these sizes in KiB, and frees their memory.
LARGE = [70, 100, 130]
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": messages.NEW,
           "Mcp-Method": "tools/call", "Mcp-Name": "run_code"}
# What differs between two answers: the id of the run, its times and its memory.
VARIABLE = re.compile(r'(execution\\?":\\?")[0-9a-f-]{36}|((?:wall_ms|cpu_ms|peak_memory_bytes)\\?":)[0-9.]+')
ANSWER_SECONDS = 30


def message(code):
    arguments = {"language": "python", "code": code}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "run_code", "arguments": arguments, "_meta": messages.META}}


def normalized(text):
    return VARIABLE.sub(lambda found: (found[1] or found[2]) + "N", text)


def ask_over_http1(service, code=CODE):
    status, _, body = service.answer(message(code), HEADERS)
    return status, normalized(body)


def ask_with_large_bodies(service):
    answers = {ask_over_http1(service, CODE + " " * kib * 1024) for kib in LARGE}
    return answers.pop() if len(answers) == 1 else answers


async def _ask_over_http2(service):
    body = json.dumps(message(CODE)).encode()
    lines = [*HEADERS.items(), ("Authorization", f"Bearer {service.token}")]
    wire = await (TlsWire if service.tls else Wire).open(service.port)
    try:
        if service.tls:
            await wire.shake_hands("h2", None)
        head = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, hpack_block.block(lines))
        await wire.send(http2.PREFACE + http2.settings() + head + http2.frame(http2.DATA, http2.END_STREAM, 1, body))
        received, text, status = b"", b"", None
        while True:
            part = await wire.receive(ANSWER_SECONDS)
            if not part:
                raise OSError(f"no whole answer over HTTP/2: {received!r}")
            received += part
            while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
                kind, flags, end = received[3], received[4], 9 + int.from_bytes(received[:3], "big")
                text += received[9:end] if kind == http2.DATA else b""
                if kind == http2.HEADERS:
                    status = 200 if "h2 200" in http2.statuses(received[:end]) else "another status"
                if kind in (http2.DATA, http2.HEADERS) and flags & http2.END_STREAM:
                    return status, normalized(text.decode())
                received = received[end:]
    finally:
        wire.close()


def ask_over_http2(service):
    return asyncio.run(_ask_over_http2(service))


def expected(service):
    """Returns the right answer of a service, which names what its host lacks. Nothing has disturbed it yet."""
    status, text = ask_over_http1(service)
    if status != 200 or json.loads(text.replace(":N", ":0"))["result"]["structuredContent"].get("stdout") != "42\n":
        raise OSError(f"the first answer is wrong: {status} {text}")
    return status, text
