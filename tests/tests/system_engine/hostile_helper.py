"""A helper for files that does not keep to the protocol: a frame is a length of four bytes, the number of the answer in four
bytes, and its fields."""

import os
import struct

BEGUN, RESOLVED, CONTENT, PIECE, PERFORMED, FAILED = range(6)
OK, ERROR = range(2)
NONE = b"\0"


def text(content):
    return struct.pack("<Q", len(content)) + content


def answer(mode, stdin, stdout):
    def send(number, fields=b""):
        body = struct.pack("<I", number) + fields
        os.write(stdout, struct.pack("<I", len(body)) + body)

    def receive():
        length = struct.unpack("<I", os.read(stdin, 4))[0]
        body = b""
        while len(body) < length:
            body += os.read(stdin, length - len(body))

    def resolve(target):
        send(RESOLVED, struct.pack("<I", OK) + text(target) + NONE)

    receive()
    send(BEGUN)
    receive()
    if mode == "garbage":
        os.write(stdout, b"\7\0\0\0garbage")
    elif mode == "another answer":
        send(PERFORMED, text(b"{}"))
    elif mode == "an endless answer":
        os.write(stdout, b"\xff\xff\xff\xff")
        while True:
            os.write(stdout, b"x" * 65536)
    elif mode == "a relative target":
        resolve(b"documents/report.txt")
    elif mode == "a target with controls":
        resolve(b"/a\x1b[2J\r\nb")
    elif mode == "a message with controls":
        send(RESOLVED, struct.pack("<I", ERROR) + b"\0" + text(b"\x1b[2J\r\n" + b"x" * 5000))
    elif mode == "the end":
        os.close(stdin)
        os.close(stdout)
        return
    elif mode in ("too large a file", "more content than announced"):
        # The links are asked for before and after the decision.
        resolve(b"/srv/report.txt")
        for _ in range(2):
            receive()
            send(6, struct.pack("<Q", 1) + text(b"/srv/report.txt") + text(b"/srv/report.txt"))
        receive()
        send(CONTENT, struct.pack("<Q", 1 << 40 if mode == "too large a file" else 3))
        send(PIECE, text(b"x" * 9))
