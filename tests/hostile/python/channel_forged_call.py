# attack: forge a request for a tool that is denied
# outcome: error denied
# control: none: there is no channel outside

import os
import struct

import _lockhouse

REQUEST, CALL, NONE_DECODED, NO_TIMEOUT, NO_LINE = 3, 0, bytes(8), b"\0", b"\0"


def words(data):
    return struct.pack("<Q", len(data)) + data


body = struct.pack("<III", REQUEST, 1_000, CALL) + words(b"fixture") + words(b"delete_everything") + words(b"{}") + NONE_DECODED + NO_TIMEOUT + NO_LINE
os.write(_lockhouse.fileno(), struct.pack("<I", len(body)) + body)
while True:
    for number, done, payload in _lockhouse.drain():
        raise PermissionError(f"done: {done}, {payload}")
