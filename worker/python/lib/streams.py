"""The code's standard streams: output goes to the supervisor in pieces, input is empty and says so."""

import codecs
import io
import sys

import _lockhouse

BUFFER_BYTES = 8 * 1024
PIECE_BYTES = 16 * 1024
ROOM_BYTES = 64 * 1024
PREFIX = "not available in the Lockhouse sandbox"
INPUT = f"{PREFIX}: there is no input; put the values into the code"

_write = _lockhouse.write
_told = set()


def tell(words, what):
    """Says on stderr what these words are about: each words once."""
    if words not in _told:
        _told.add(words)
        print(f"{what}: {words}", file=sys.stderr)


def require_room(size=0):
    """Raises MemoryError where there is too little memory for a request. What Rust cannot allocate ends the worker."""
    bytes(ROOM_BYTES + 2 * size)


class _Sink(io.RawIOBase):
    """Takes bytes and passes on text. BufferedWriter repeats what was not taken, and holds a lock meanwhile."""

    def __init__(self, stream):
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self):
        return True

    def write(self, data):
        with memoryview(data) as view:
            piece = bytes(view[:PIECE_BYTES])
        text = self._decode(piece)
        if text:
            require_room()
            _write(self._stream, text)
        return len(piece)


class _NoInput(io.RawIOBase):
    """Nothing to read, which may surprise whoever reads."""

    def readable(self):
        return True

    def readinto(self, buffer):
        tell(INPUT, "sys.stdin is empty")
        return 0


def _output(stream):
    buffer = io.BufferedWriter(_Sink(stream), BUFFER_BYTES)
    # stdout line by line: a program that prints and then computes is seen to have printed. On stderr the interpreter also warns
    # of what it finds after a program's end, in words that are not the program's.
    lines = stream == 1
    return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", newline="\n", line_buffering=lines)


_open = []


def install():
    """Replaces the three streams. In the worker, since a lock that the zygote held would stay held."""
    _open[:] = [_output(1), _output(2)]
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = _open
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(_NoInput()), "utf-8")


def flush():
    """Passes on what is buffered, also when the code has replaced `sys.stdout`."""
    for stream in _open:
        try:
            stream.flush()
        except ValueError:
            pass  # The code has closed or detached it.
