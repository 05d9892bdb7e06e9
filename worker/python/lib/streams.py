"""Standard streams of the code: output is sent to the supervisor in pieces, input is empty."""

import codecs
import io
import sys

import _lockhouse

BUFFER_BYTES = 8 * 1024
PIECE_BYTES = 16 * 1024
ROOM_BYTES = 64 * 1024
PREFIX = "not available in the Lockhouse sandbox"
NO_INPUT = f"{PREFIX}: there is no input; put the values into the code"

_write = _lockhouse.write
_require_memory = _lockhouse.require_memory
_warned = set()


def warn_once(words, what):
    """Prints a note on stderr, once for each explanation."""
    if words not in _warned:
        _warned.add(words)
        print(f"{what}: {words}", file=sys.stderr)


def require_room(size=0):
    """Raises MemoryError if there is too little memory for a request. A failed allocation in Rust would end the worker."""
    _require_memory(ROOM_BYTES + 2 * size)


class _OutputSink(io.RawIOBase):
    """Raw stream that sends text to the supervisor. The BufferedWriter above repeats incomplete writes and holds a lock."""

    def __init__(self, stream):
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self):
        return True

    def write(self, data):
        piece = bytes(data[:PIECE_BYTES])
        text = self._decode(piece)
        if text:
            require_room()
            _write(self._stream, text)
            _Printed.anything = True
        return len(piece)


class _EmptyInput(io.RawIOBase):
    """Raw stream without input. Prints a note when it is read."""

    def readable(self):
        return True

    def readinto(self, buffer):
        warn_once(NO_INPUT, "sys.stdin is empty")
        return 0


def _output(stream):
    buffer = io.BufferedWriter(_OutputSink(stream), BUFFER_BYTES)
    # stdout is line-buffered, so that lines printed before a long computation are visible. stderr is not, since the interpreter
    # prints warnings there after a program has ended.
    lines = stream == 1
    return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", newline="\n", line_buffering=lines)


_outputs = []


class _Printed:
    """Whether the program of this run has printed anything."""

    anything = False


def begin_run():
    """Begins to watch for output."""
    _Printed.anything = False


def has_printed():
    """Whether the program has printed anything. Sends all buffered output."""
    flush()
    return _Printed.anything


def install():
    """Replaces the three streams. Runs in the zygote, which has one thread, so no lock of a stream is held at a fork."""
    _outputs[:] = [_output(1), _output(2)]
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = _outputs
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(_EmptyInput()), "utf-8")


def flush():
    """Sends all buffered output, even if the code has replaced `sys.stdout`."""
    for stream in _outputs:
        try:
            stream.flush()
        except ValueError:
            pass  # The code has closed or detached the stream.
