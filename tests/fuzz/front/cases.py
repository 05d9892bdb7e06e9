"""Cases of the fuzzer: each is one connection, which its seed and number determine."""

import dataclasses
import random

from . import http1, http2, messages, tls
from .mutation import split

# Kinds of input, each with how often it is chosen.
HTTP1 = {"request": (http1.plain, 5), "changed": (http1.changed, 5), "pipelined": (http1.pipelined, 3),
    "message": (http1.message, 6),
         "stream": (http1.stream, 2), "noise": (http1.noise, 1)}
HTTP2 = {"frames": (http2.frames, 5), "changed": (http2.changed, 4), "hpack": (http2.hpack, 4), "message": (http2.message, 3),
    "flood": (http2.flood, 2)}
TLS = {"hello": (tls.hello, 3), "records": (tls.records, 3)}
KINDS = [(f"http1 {name}", make, weight) for name, (make, weight) in HTTP1.items()]
KINDS += [(f"http2 {name}", make, weight) for name, (make, weight) in HTTP2.items()]
KINDS += [(f"tls {name}", make, weight) for name, (make, weight) in TLS.items()]
KINDS.append(("tls ciphertext", http1.plain, 2))


@dataclasses.dataclass
class Case:
    """What one connection sends, with the places of pauses between its parts, and how it ends."""

    number: int
    kind: str
    parts: list
    # Whether the bytes are sent within TLS, and the protocol that the client offers then.
    is_inner: bool
    protocol: str
    pauses: set
    # "wait" for an answer, "half-close", "reset", "close" at once, or read "slowly".
    end: str
    # The seed with which ciphertext is changed.
    corruption: str | None

    def has_token(self):
        return messages.TOKEN.encode() in b"".join(self.parts)

    def final_parts(self, token, session):
        """Returns the parts with the token and the session of a service. A part may end within one of the two."""
        data = b"".join(self.parts)
        data = data.replace(messages.TOKEN.encode(), token.encode()).replace(messages.SESSION.encode(), session.encode())
        parts = []
        for part in self.parts:
            parts.append(data[: len(part)])
            data = data[len(part) :]
        return parts


def make(seed, number):
    """Returns the case with this number."""
    generator = random.Random(f"{seed}/{number}")
    kind, function, _ = generator.choices(KINDS, [weight for *_, weight in KINDS])[0]
    parts = split(generator, function(generator))
    is_raw = kind in ("tls hello", "tls records")
    is_inner = kind == "tls ciphertext" or (not is_raw and generator.random() < 0.3)
    matching = "h2" if kind.startswith("http2") else "http/1.1"
    protocol = matching if generator.random() < 0.9 else generator.choice(["h2", "http/1.1", ""])
    pauses = {generator.randrange(len(parts)) for _ in range(generator.choice([0, 0, 1, 2]))}
    end = generator.choice(["wait"] * 12 + ["half-close"] * 5 + ["reset", "close", "slowly"])
    corruption = f"{seed}/{number}/ciphertext" if kind == "tls ciphertext" else None
    return Case(number, kind, parts, is_inner, protocol, pauses, end, corruption)
