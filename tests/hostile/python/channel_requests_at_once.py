# attack: have more requests in flight than the limit
# outcome: killed requests in flight
# control: none: there is no channel outside

import os
import struct

import _lockhouse

REQUEST, CALL, NONE_DECODED, NO_TIMEOUT, NO_LINE = 3, 0, bytes(8), b"\0", b"\0"


def words(data):
    return struct.pack("<Q", len(data)) + data


def call(number):
    body = struct.pack("<III", REQUEST, number, CALL) + words(b"fixture") + words(b"slow") + words(b'{"ms":4000}') + NONE_DECODED + NO_TIMEOUT + NO_LINE
    return struct.pack("<I", len(body)) + body


os.write(_lockhouse.fileno(), b"".join(map(call, range(1_000, 1_100))))
while True:
    pass
