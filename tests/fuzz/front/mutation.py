"""Changes of bytes that are the same for the same random generator."""

INTEGERS = [0, 1, 2, 7, 8, 15, 16, 31, 63, 64, 127, 128, 255, 256, 511, 1023, 4095, 4096, 16383, 16384, 16385, 32767, 32768,
    65535, 65536,
            2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64]
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\n\n", b"\0", b" ", b"\t", b":", b";", b",", b"=", b"\"", b"\\", b"{", b"}", b"[",
    b"]", b"%00", b"%2e%2e/",
    b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"-1", b"+1", b"0x10",
    b"1e999", b"-0", b"NaN", b"null",
    b"Content-Length: 0\r\n", b"Content-Length: 18446744073709551616\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", b"Expect: 100-continue\r\n",
    b"0\r\n\r\n", b"\r\nffffffffffffffff\r\n",
    b"Mcp-Session-Id: ", b"MCP-Protocol-Version: ", b"Last-Event-ID: ", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\"id\":", b"\"method\":", b"\"params\":", b"\"_meta\":", b"\"jsonrpc\":\"2.0\"", b"\\u0000", b"\\ud800",
    b"\"$serde_json::private::RawValue\":",
    b"\"$serde_json::private::Number\":", b"/mcp", b"/.well-known/oauth-protected-resource", b"/metrics", b"/health", b"/ready",
    b"/live",
]


def _position(random, data):
    return random.randrange(len(data) + 1)


def _range(random, data):
    first = _position(random, data)
    return first, min(len(data), first + random.choice([1, 1, 2, 4, 8, 16, 64, 256, 4096]))


def _flip(random, data, _others):
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(random, data, _others):
    if data:
        data[random.randrange(len(data))] = random.choice([0, 1, 9, 10, 13, 32, 127, 128, 255, random.randrange(256)])


def _delete(random, data, _others):
    first, end = _range(random, data)
    del data[first:end]


def _duplicate(random, data, _others):
    first, end = _range(random, data)
    data[first:first] = data[first:end] * random.choice([1, 1, 2, 3, 20])


def _insert_token(random, data, _others):
    at = _position(random, data)
    data[at:at] = random.choice(TOKENS)


def _insert_random(random, data, _others):
    at = _position(random, data)
    data[at:at] = random.randbytes(random.choice([1, 2, 3, 8, 40]))


def _write_integer(random, data, _others):
    width = random.choice([1, 2, 3, 4, 8])
    at = _position(random, data)
    data[at : at + width] = (random.choice(INTEGERS) % 2 ** (8 * width)).to_bytes(width,
        random.choice(["big", "big", "little"]))


def _change_number(random, data, _others):
    """Replaces a number that is written as text."""
    starts = [at for at in range(len(data)) if 48 <= data[at] <= 57 and (at == 0 or not 48 <= data[at - 1] <= 57)]
    if starts:
        first = end = random.choice(starts)
        while end < len(data) and 48 <= data[end] <= 57:
            end += 1
        data[first:end] = str(random.choice(INTEGERS) + random.choice([-1, 0, 0, 1])).encode()


def _splice(random, data, others):
    other = random.choice(others)
    first, end = _range(random, other)
    at = _position(random, data)
    data[at : at + random.choice([0, 0, end - first])] = other[first:end]


def _cut(random, data, _others):
    del data[_position(random, data):]


def _swap(random, data, _others):
    first, end = _range(random, data)
    part = data[first:end]
    del data[first:end]
    at = _position(random, data)
    data[at:at] = part


CHANGES = [_flip, _flip, _set, _set, _delete, _duplicate, _insert_token, _insert_token, _insert_random, _write_integer,
    _change_number, _splice, _cut, _swap]


def mutate(random, data, others=(b"",)):
    """Returns the bytes with one to six changes. Others are inputs of the same kind, from which parts are taken."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 6])):
        random.choice(CHANGES)(random, data, others)
    return bytes(data)


def split(random, data):
    """Divides the bytes at random places, sometimes into single bytes."""
    if len(data) < 2 or random.random() < 0.5:
        return [data]
    if len(data) <= 400 and random.random() < 0.05:
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted({random.randrange(1, len(data)) for _ in range(random.choice([1, 1, 2, 3, 8]))})
    return [data[first:end] for first, end in zip([0, *places], [*places, len(data)])]
