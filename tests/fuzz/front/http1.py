"""Requests over HTTP/1.1, valid and invalid ones."""

import json

from . import messages
from .mutation import INTEGERS, mutate

METHODS = ["POST"] * 6 + ["GET", "GET", "DELETE", "PUT", "OPTIONS", "HEAD", "CONNECT", "TRACE", "PRI", "post", "A" * 40, "", "G\0T"]
TARGETS = ["/mcp"] * 8 + [
    "/", "/live", "/ready", "/health", "/metrics", "/mcp/", "/mcp?token=x", "//mcp", "/%6dcp", "*", "http://localhost/mcp",
    "localhost:443", "/.well-known/oauth-protected-resource/mcp", "/mcp#x", "/\xff", "/" + "a" * 9_000, "http://[::1", "/mcp\t",
    "http://a@localhost/mcp"]
VERSIONS = ["HTTP/1.1"] * 12 + ["HTTP/1.0", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.9", "http/1.1", "HTTP/1.1 ", ""]
ODD_HEADERS = [
    ("Content-Length", "0"), ("Content-Length", "5"), ("Content-Length", "-1"), ("Content-Length", "+5"),
    ("Content-Length", "5, 5"),
    ("Content-Length", "18446744073709551616"), ("Content-Length", "0x5"), ("Transfer-Encoding", "chunked"),
    ("Transfer-Encoding", "gzip, chunked"),
    ("Transfer-Encoding", "chunked, identity"), ("Transfer-Encoding", "\x0bchunked"), ("TE", "trailers"),
    ("Expect", "100-continue"), ("Expect", "x"),
    ("Connection", "close"), ("Connection", "keep-alive, Host, Content-Length"), ("Upgrade", "h2c"), ("Upgrade", "websocket"),
    ("HTTP2-Settings", "AAMAAABk"),
    ("Host", "localhost"), ("Host", "evil.example"), ("Host", "localhost:99999"), ("Host", "[::1]"), ("Host", ""),
    ("Origin", "null"), ("Origin", "https://evil.example"),
    ("X-Forwarded-For", "1.2.3.4, ::1, unknown"), ("Forwarded", 'for="[::1]:1";by=x, for=_h'), ("Cookie", "a=b"),
    ("Authorization", "Basic YTpi"),
    ("Authorization", f"Bearer  {messages.TOKEN}"), ("Authorization", "Bearer " + "a" * 5_000),
    ("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."), ("Accept", "text/event-stream;q=0"),
    ("Accept", "*/*"), ("Content-Type", "text/plain"), ("Content-Type", "application/json; charset=utf-16"),
    ("Content-Encoding", "gzip"), ("Last-Event-ID", "0/0"),
    ("Last-Event-ID", "18446744073709551615/-1"), ("Mcp-Session-Id", messages.SESSION), ("Mcp-Session-Id", "x" * 200),
    ("MCP-Protocol-Version", "2099-01-01"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("baggage", "a=b,c=%ff;x"),
    ("Idempotency-Key", "a\x80"), ("Range", "bytes=0-"),
    ("X" * 300, "y"), ("x", "y" * 20_000), ("a b", "c"), ("", "c"), ("é", "c"), ("x", "a\0b"), ("x", "a\rb"), ("x", "a\r\n b"),
    ("x", "a\nb"), ("x ", "y"), ("x", "\x7f\x80\xff")]


def chunked(random, body):
    """Writes a body in chunks, sometimes with invalid sizes, extensions and trailers."""
    written, rest = [], body
    while rest:
        size = random.choice([1, 2, 10, 100, 5_000, len(rest)])
        part, rest = rest[:size], rest[size:]
        text = f"{len(part):x}"
        if random.random() < 0.03:
            text = random.choice([f"{random.choice(INTEGERS):x}", "-1", "0x5", "", " 5", "5 ", f"{len(part):020x}", "g", "5\t",
                "ffffffffffffffffff"])
        if random.random() < 0.05:
            text += random.choice([";a=b", ";" + "x" * 5_000, ';a="\\"', ";\0", " ;a"])
        line_end = random.choice([b"\r\n"] * 30 + [b"\n", b"\r", b""])
        written.append(text.encode() + line_end + part + random.choice([b"\r\n"] * 30 + [b"\n", b"xx", b""]))
        if len(written) > 300:
            break
    end = random.choice([b"0\r\n\r\n"] * 8 + [b"0\r\nX: y\r\n\r\n", b"0\r\nContent-Length: 5\r\n\r\n", b"00000\r\n\r\n",
        b"0\r\n" + b"X: y\r\n" * 2_000 + b"\r\n", b"0\r\n", b""])
    return b"".join(written) + end


def request(random, oddity=0.2):
    """Returns a request. `oddity` is how likely its head differs from that of a client."""
    made, is_new = messages.message(random)
    lines = messages.headers(random, made, is_new)
    if random.random() < 0.3:
        made = messages.change_json(random, made)
    body = messages.to_text(random, made)
    method, target, version = "POST", "/mcp", "HTTP/1.1"
    if random.random() < oddity:
        method, target, version = random.choice(METHODS), random.choice(TARGETS), random.choice(VERSIONS)
    if random.random() < oddity:
        lines += random.choices(ODD_HEADERS, k=random.choice([1, 1, 2, 5]))
    if random.random() < oddity / 4:
        lines += [(f"X-{number}", "y") for number in range(random.choice([10, 50, 64, 65, 100, 2_000]))]
    if random.random() < oddity / 2:
        random.shuffle(lines)
    if random.random() < oddity / 2:
        lines.pop(random.randrange(len(lines)))
    if method == "GET" and random.random() < 0.7:
        body = b""
    elif random.random() < 0.3:
        lines.append(("Transfer-Encoding", "chunked"))
        body = chunked(random, body)
    else:
        lines.append(("Content-Length", str(len(body) + (random.choice([-1, 1, 10, -len(body),
            2**20]) if random.random() < oddity / 4 else 0))))
    ending = random.choice(["\r\n"] * 20 + ["\n", "\r"]) if random.random() < oddity else "\r\n"
    head = f"{method} {target} {version}{ending}" + "".join(f"{name}: {value}{ending}" for name, value in lines) + ending
    return head.encode("latin-1", "replace") + body


def plain(random):
    return request(random)


def changed(random):
    return mutate(random, request(random, 0.05), [request(random, 0.2)])


def pipelined(random):
    requests = [request(random, 0.1) for _ in range(random.choice([2, 3, 5, 20]))]
    data = b"".join(requests)
    return mutate(random, data, requests) if random.random() < 0.5 else data


def message(random):
    """Returns a request with a valid head and a changed message."""
    made, is_new = messages.message(random)
    lines = messages.headers(random, made, is_new)
    body = messages.to_text(random, messages.change_json(random, json.loads(json.dumps(made))))
    lines.append(("Content-Length", str(len(body))))
    return ("POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n").encode("latin-1",
        "replace") + body


def stream(random):
    """Returns a GET or DELETE of a session."""
    lines = [("Host", "localhost"), ("Accept", "text/event-stream"), ("Authorization", f"Bearer {messages.TOKEN}"),
             ("MCP-Protocol-Version", random.choice(messages.OLD)), ("Mcp-Session-Id", messages.SESSION)]
    if random.random() < 0.5:
        lines.append(("Last-Event-ID", random.choice(["0/0", "1/0", "0", "", "a/b", "-1/5",
            "18446744073709551615/18446744073709551615", "x" * 500, "0/99999999999999999999"])))
    method = random.choice(["GET"] * 9 + ["DELETE"])
    data = (f"{method} /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n").encode()
    return mutate(random, data) if random.random() < 0.5 else data


def noise(random):
    return random.randbytes(random.choice([1, 3, 9, 24, 100, 5_000, 40_000]))
