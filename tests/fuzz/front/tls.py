"""Bytes of TLS clients: a valid ClientHello for any key share, changed ones, and records that follow it."""

from .mutation import INTEGERS, mutate

HANDSHAKE, CHANGE_CIPHER, ALERT, APPLICATION = 22, 20, 21, 23


def vector(data, width):
    """Returns data with its length before it. The length of data that is too long for it is wrong."""
    return min(len(data), 2 ** (8 * width) - 1).to_bytes(width, "big") + data


def record(kind, data, version=b"\x03\x03"):
    return bytes([kind]) + version + vector(data, 2)


def extension(kind, data):
    return kind.to_bytes(2, "big") + vector(data, 2)


def hello_message(random, is_odd=False):
    """Returns a ClientHello of TLS 1.3 with a share for X25519, of which any 32 bytes are a valid public key."""
    protocols = random.choice([[b"h2", b"http/1.1"], [b"http/1.1"], [b"h2"], [b"x"], []])
    extensions = [
        extension(0, vector(b"\0" + vector(b"localhost", 2), 2)), extension(10, vector(b"\x00\x1d\x00\x17", 2)),
        extension(13, vector(bytes.fromhex("0403050308040805080604010501"), 2)),
        extension(43, vector(b"\x03\x04", 1)), extension(45, b"\x01\x01"),
        extension(51, vector(b"\x00\x1d" + vector(random.randbytes(32), 2), 2))]
    if protocols:
        extensions.append(extension(16, vector(b"".join(vector(name, 1) for name in protocols), 2)))
    if is_odd:
        odd = [
            extension(0, vector(b"\0" + vector(b"a" * 300, 2), 2)), extension(0, b""), extension(10, vector(b"\x00\x17", 2)),
            extension(43, vector(b"\x03\x03\x7f\x1c\x03\x04", 1)),
            extension(51, vector(b"", 2)), extension(51, vector(b"\x00\x17" + vector(b"\x04" + random.randbytes(64), 2), 2)),
            extension(51, vector(b"\x00\x1d" + vector(bytes(32), 2), 2)),
            extension(51, vector(b"\x11\xec" + vector(random.randbytes(1_216), 2), 2)),
            extension(21, bytes(random.choice([0, 500, 16_000]))), extension(42, b""), extension(35, random.randbytes(40)),
            extension(41, vector(vector(random.randbytes(32), 2) + bytes(4), 2) + vector(vector(random.randbytes(32), 1), 2)),
            extension(44, vector(b"cookie", 2)),
            extension(random.choice([5, 18, 27, 28, 49, 50, 57, 0x0A0A, 0xFE0D, 65_535]),
            random.randbytes(random.choice([0, 2, 30]))), extension(13, vector(b"\x02\x01", 2))]
        for _ in range(random.choice([1, 2, 4])):
            extensions.insert(random.randrange(len(extensions) + 1), random.choice(odd))
        if random.random() < 0.4:
            extensions.pop(random.randrange(len(extensions)))
    suites = random.choice([bytes.fromhex("130113021303"), b"\x13\x02", b"\x0a\x0a\x13\x01\xc0\x2f", b"\xc0\x2f",
        b""] if is_odd else [bytes.fromhex("130113021303")])
    body = b"\x03\x03" + random.randbytes(32) + vector(random.randbytes(random.choice([0, 32])), 1) + vector(suites,
        2) + b"\x01\x00" + vector(b"".join(extensions), 2)
    return b"\x01" + vector(body, 3)


def hello(random):
    """Returns a changed ClientHello."""
    message = hello_message(random, random.random() < 0.6)
    if random.random() < 0.5:
        message = mutate(random, message, [hello_message(random, True)])
    if random.random() < 0.3:
        size = random.choice([1, 2, 10, 100])
        return b"".join(record(HANDSHAKE, message[at : at + size], b"\x03\x01") for at in range(0, len(message), size))
    data = record(HANDSHAKE, message, random.choice([b"\x03\x01", b"\x03\x03", b"\x03\x00", b"\x7f\x7f"]))
    return mutate(random, data) if random.random() < 0.3 else data


def odd_record(random):
    return random.choice([
        record(CHANGE_CIPHER, b"\x01"), record(CHANGE_CIPHER, b"\x02"), record(CHANGE_CIPHER, b"\x01\x01"),
        record(ALERT, b"\x01\x00"), record(ALERT, b"\x02\x28"), record(ALERT, b"\x01"),
        record(ALERT, b"\x01\x5a" * 20), record(HANDSHAKE, b""), record(HANDSHAKE, b"\x14" + vector(random.randbytes(32), 3)),
        record(HANDSHAKE, hello_message(random)),
        record(HANDSHAKE, b"\x01" + random.choice(INTEGERS[:25]).to_bytes(3,
        "big")[-3:] + b"x" * 10 if random.random() < 0.5 else b"\x18\x00\x00\x01\x01"),
        record(APPLICATION, b""), record(APPLICATION, random.randbytes(random.choice([1, 16, 17, 53, 500, 16_384, 16_640,
        16_641]))), record(random.randrange(256), random.randbytes(20)),
        record(APPLICATION, random.randbytes(40)) * 50, record(CHANGE_CIPHER, b"\x01") * 40,
        bytes([22, 3, 3]) + random.choice(INTEGERS[:30]).to_bytes(5, "big")[-2:]])


def records(random):
    """Returns a valid ClientHello, and records that do not continue its handshake."""
    sent = [record(HANDSHAKE, hello_message(random), b"\x03\x01"),
        *(odd_record(random) for _ in range(random.choice([1, 1, 2, 4])))]
    if random.random() < 0.1:
        sent.insert(0, odd_record(random))
    data = b"".join(sent)
    return mutate(random, data) if random.random() < 0.3 else data


def outcome(data):
    """Returns what the server answered: the number of its alert, or that it went on with the handshake."""
    while len(data) >= 6:
        kind, length = data[0], int.from_bytes(data[3:5], "big")
        if kind == ALERT and length == 2:
            return f"tls alert {data[6]}" if len(data) > 6 else "tls alert"
        if kind in (HANDSHAKE, APPLICATION):
            return "tls handshake"
        data = data[5 + length :]
    return "tls other"
