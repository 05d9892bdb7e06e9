"""Header blocks of HTTP/2: valid ones, invalid ones, and the status in that of a response."""

from . import messages
from .mutation import INTEGERS, mutate


def integer(value, prefix, first=0):
    """Writes an integer of HPACK with a prefix of so many bits."""
    most = 2**prefix - 1
    if value < most:
        return bytes([first | value])
    written, value = [first | most], value - most
    while value >= 128:
        written.append(value % 128 | 128)
        value //= 128
    return bytes([*written, value])


def text(value, huffman=0):
    data = value if isinstance(value, bytes) else value.encode("latin-1", "replace")
    return integer(len(data), 7, huffman) + data


def header(name, value, first=0x00):
    """Writes a header whose name and value are literals: 0x00 not indexed, 0x40 added to the table, 0x10 never indexed."""
    return bytes([first]) + text(name.lower() if isinstance(name, str) else name) + text(value)


def block(lines, method="POST", path="/mcp"):
    pseudo = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
    return b"".join(header(name, value) for name, value in [*pseudo,
        *((name, value) for name, value in lines if name != "Host")])


def odd_block(random):
    """Returns a header block that differs from that of a client."""
    lines = [header(":method", "POST"), header(":scheme", "https"), header(":authority", "localhost"), header(":path", "/mcp"),
             header("authorization", f"Bearer {messages.TOKEN}", 0x10), header("content-type", "application/json", 0x40)]
    odd = [
        header(":method", "GET"), header(":path", ""), header(":path", "*"), header(":protocol", "websocket"),
        header(":status", "200"), header(":x", "y"),
        header("connection", "close"), header("transfer-encoding", "chunked"), header("te", "gzip"),
        header("content-length", "5"), header("content-length", "-1"),
        header(b"Upper", "x"), header(b"", "x"), header(b"a b", "x"), header(b"a\0", b"\0"), header("x", b"a\r\nb"),
        header("host", "evil.example"), header("cookie", "a=b"),
        header(":authority", "evil.example"), header("x" * 5_000, "y"), header("x", "y" * 20_000),
        header("z", "y" * 3_000, 0x40) * 8,
        integer(random.choice([1, 2, 4, 61, 62, 63, 70, 2**31, 2**64]), 7, 0x80),
        integer(random.choice([0, 1, 4096, 4097, 2**32]), 5, 0x20), b"\x80",
        b"\x40" + text(random.randbytes(random.choice([1, 5, 60])), 0x80) + text(random.randbytes(20), 0x80),
        b"\x00\x81\xff\x81\xff", b"\x00\x84\xff\xff\xff\xff\x00",
        integer(2, 6, 0x40) + text("POST"), b"\x00" + integer(2**40, 7) + b"a", b"\xff" * 20,
        b"\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"]
    for _ in range(random.choice([1, 1, 2, 5])):
        lines.insert(random.randrange(len(lines) + 1), random.choice(odd))
    if random.random() < 0.3:
        lines.pop(random.randrange(len(lines)))
    if random.random() < 0.2:
        random.shuffle(lines)
    data = b"".join(lines)
    return mutate(random, data) if random.random() < 0.4 else data


def status(head):
    """Returns the status in the first header block of a connection, which names it first."""
    while head and head[0] & 0xE0 == 0x20:
        head = head[1:]
    indexed = {0x88: "200", 0x89: "204", 0x8A: "206", 0x8B: "304", 0x8C: "400", 0x8D: "404", 0x8E: "500"}
    if not head or head[0] in indexed or len(head) < 3:
        return indexed.get(head[0] if head else 0, "other")
    value = head[2 : 2 + (head[1] & 127)]
    if not head[1] & 128:
        return value.decode(errors="replace")
    bits, status = "".join(f"{byte:08b}" for byte in value), ""
    while len(status) < 3 and len(bits) >= 5:
        size = 5 if bits.startswith(("00000", "00001", "00010")) else 6
        code = int(bits[:size], 2)
        status, bits = status + str(code if size == 5 else code - 0b011001 + 3), bits[size:]
    return status
