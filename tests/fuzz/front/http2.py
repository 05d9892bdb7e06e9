"""Connections of HTTP/2: valid requests, changed and invented frames, and games with windows, resets and CONTINUATION."""

from . import hpack_block, messages
from .mutation import INTEGERS, mutate

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, PRIORITIZED, ACK = 0x1, 0x4, 0x8, 0x20, 0x1
WINDOWS = [0, 1, 100, 65_535, 2**31 - 1, 2**31, 2**32 - 1]


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    return (len(payload) if length is None else length).to_bytes(3, "big") + bytes([kind, flags]) + (stream % 2**32).to_bytes(4,
        "big") + payload


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join((name % 65_536).to_bytes(2, "big") + (value % 2**32).to_bytes(4, "big") for name,
        value in pairs))


def request_parts(random, is_changed=None):
    """Returns the header block and the body of a request."""
    made, is_new = messages.message(random)
    lines = messages.headers(random, made, is_new)
    if is_changed or (is_changed is None and random.random() < 0.3):
        made = messages.change_json(random, made)
    return hpack_block.block(lines), messages.to_text(random, made)


def stream_frames(random, stream, head, body):
    """Returns the frames of a request: its headers in one frame or more, maybe with a priority and padding, and its body."""
    pieces, flags, priority = [head], 0, b""
    if random.random() < 0.3:
        at = random.randrange(len(head) + 1)
        pieces = [head[:at], *([b""] * random.choice([0, 0, 1, 10])), head[at:]]
    if random.random() < 0.2:
        flags, priority = PRIORITIZED, random.choice([0, 1, stream, 2**31 + 3]).to_bytes(4, "big") + b"\x10"
    if not body:
        flags |= END_STREAM
    first = priority + pieces[0]
    if random.random() < 0.1:
        flags, first = flags | PADDED, bytes([random.choice([5, 5, 5, 0, 255])]) + first + bytes(5)
    frames = [frame(HEADERS, flags | (END_HEADERS if len(pieces) == 1 else 0), stream, first)]
    for number, piece in enumerate(pieces[1:], 2):
        frames.append(frame(CONTINUATION, END_HEADERS if number == len(pieces) else 0, stream, piece))
    size = random.choice([1_000, 16_384, 16_384, 16_385])
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return frames + [frame(DATA, END_STREAM if number + 1 == len(parts) else 0, stream, part) for number,
        part in enumerate(parts)]


def odd_frame(random):
    """Returns a frame that a client need not send, or that is invalid."""
    stream = random.choice([0, 1, 1, 2, 3, 5, 7, 2**31 - 1, 2**31 + 1])
    window = random.choice(WINDOWS).to_bytes(4, "big")
    return random.choice([
        settings((random.choice([1, 2, 3, 4, 5, 6, 8, 9, 99]), random.choice(INTEGERS))), frame(SETTINGS, ACK),
        frame(SETTINGS, ACK, 0, b"\0" * 6), frame(SETTINGS, 0, stream, b"\0" * 5),
        frame(WINDOW, 0, stream, window), frame(WINDOW, 0, 0, window[:3]),
        frame(RESET, 0, stream, random.choice([0, 8, 2**32 - 1]).to_bytes(4, "big")), frame(RESET, 0, stream, b""),
        frame(PING, 0, 0, bytes(8)), frame(PING, ACK, 0, bytes(8)), frame(PING, 0, stream, bytes(7)),
        frame(GOAWAY, 0, 0, bytes(8) + b"why"), frame(GOAWAY, 0, stream, bytes(3)),
        frame(PRIORITY, 0, stream, stream.to_bytes(4, "big") + b"\1"), frame(PRIORITY, 0, stream, b""),
        frame(PUSH, END_HEADERS, stream, bytes(4)), frame(CONTINUATION, END_HEADERS, stream, b"\x82"),
        frame(DATA, random.choice([0, 1, 8, 9]), stream, random.randbytes(random.choice([0, 1, 50]))),
        frame(HEADERS, random.randrange(256), stream, hpack_block.odd_block(random)),
        frame(random.randrange(256), random.randrange(256), random.choice(INTEGERS),
        random.randbytes(random.choice([0, 4, 5, 8, 17]))),
        frame(random.choice([0, 1, 4]), 0, stream, b"x" * 16_385),
        frame(DATA, 0, stream, b"", random.choice([1, 16_384, 16_385, 2**24 - 1]))])


def _connection(random, streams=1):
    frames = [settings(*random.choice([[], [(3, 100), (4, 65_535)], [(2, 0)], [(1, 0)], [(4, 0)], [(5, 2**24 - 1)]]))]
    for number in range(streams):
        frames += stream_frames(random, 2 * number + 1, *request_parts(random))
    return frames


def frames(random):
    """Returns a connection whose frames are changed, repeated, left out, or in another order, with invented ones among them."""
    sent = _connection(random, random.choice([1, 1, 2, 5]))
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        at, what = random.randrange(len(sent)), random.random()
        if what < 0.5:
            sent.insert(at, odd_frame(random))
        elif what < 0.7:
            sent.insert(random.randrange(len(sent)), sent[at])
        elif what < 0.8 and len(sent) > 1:
            sent.pop(at)
        elif what < 0.9:
            random.shuffle(sent)
        else:
            sent[at] = mutate(random, sent[at])
    return PREFACE + b"".join(sent)


def changed(random):
    data = PREFACE + b"".join(_connection(random))
    return mutate(random, data, [odd_frame(random)])


def hpack(random):
    heads = [hpack_block.odd_block(random) for _ in range(random.choice([1, 1, 3]))]
    return PREFACE + settings() + b"".join(b"".join(stream_frames(random, 2 * number + 1, head, b"{}")) for number,
        head in enumerate(heads))


def message(random):
    return PREFACE + settings() + b"".join(stream_frames(random, 1, *request_parts(random, True)))


def flood(random):
    """Returns many frames that cost a server more than its client."""
    head, body = request_parts(random, False)
    count = random.choice([10, 65, 200, 1_000])
    kind = random.randrange(9)
    if kind == 0:
        sent = b"".join(frame(HEADERS, END_HEADERS, 2 * number + 1, head) + frame(RESET, 0, 2 * number + 1,
            bytes(3) + b"\x08") for number in range(count))
    elif kind == 1:
        sent = frame(HEADERS, 0, 1, head) + frame(CONTINUATION, 0, 1,
            random.choice([b"", hpack_block.header("x", "y"), hpack_block.header("z", "y" * 3_000, 0x40)])) * count
    elif kind == 2:
        sent = frame(PING, 0, 0, bytes(8)) * count
    elif kind == 3:
        sent = settings((4, random.choice(WINDOWS)), (1, random.choice([0, 4096, 2**32 - 1]))) * count
    elif kind == 4:
        sent = frame(HEADERS, END_HEADERS, 1, head) + frame(DATA, 0, 1) * count
    elif kind == 5:
        sent = frame(HEADERS, END_HEADERS, 1, head) + frame(WINDOW, 0, random.choice([0, 1]),
            random.choice(WINDOWS).to_bytes(4, "big")) * random.choice([1, 2, count])
    elif kind == 6:
        sent = b"".join(frame(HEADERS, END_HEADERS, 2 * number + 1, head) + frame(DATA, 0, 2 * number + 1,
            body[:5]) for number in range(count))
    elif kind == 7:
        sent = settings((4, 0)) + b"".join(b"".join(stream_frames(random, 2 * number + 1, head,
            body)) for number in range(min(count, 100)))
        sent += b"".join(frame(WINDOW, 0, 2 * number + 1, (1).to_bytes(4, "big")) for number in range(min(count, 100)))
    else:
        sent = b"".join(frame(PRIORITY, 0, 2 * number + 1, bytes(4) + b"\1") for number in range(count)) + frame(DATA, PADDED,
            1, b"\xff" + bytes(255)) * count
    return PREFACE + settings() + sent


def statuses(data):
    """Returns what the frames of a server say: statuses of responses, and codes of resets and of the end of the connection."""
    found, is_first = set(), True
    while len(data) >= 9:
        length, kind = int.from_bytes(data[:3], "big"), data[3]
        payload, data = data[9 : 9 + length], data[9 + length :]
        if kind == HEADERS and is_first:
            found.add(f"h2 {hpack_block.status(payload)}")
            is_first = False
        elif kind == RESET:
            found.add(f"h2 reset {int.from_bytes(payload[:4], 'big')}")
        elif kind == GOAWAY:
            found.add(f"h2 goaway {int.from_bytes(payload[4:8], 'big')}")
    return found or {"h2 settings"}
