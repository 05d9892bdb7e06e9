"""The program's text: where an instruction stands in it, and a line of it with a caret."""

import io
import itertools
import linecache

from lockhouse_calls import CODE as FILENAME

WIDTH = 100  # Characters of a line that are shown.
_PARSED_MAX = 100_000

_lines = []


class Place:
    """Where an error is: the code's innermost frame, its line, and what part of the line, as far as they are known."""

    __slots__ = ("frame", "line", "span")

    def __init__(self, frame, line, span):
        self.frame = frame
        self.line = line
        self.span = span


def set_source(code):
    """The lines that tracebacks show, ours and those that the code prints itself."""
    _lines[:] = io.StringIO(code, newline=None)
    linecache.cache[FILENAME] = (len(code), None, list(_lines), FILENAME)


def line_of(number):
    """A line without its end; empty where there is none."""
    return _lines[number - 1].rstrip("\r\n") if number and 0 < number <= len(_lines) else ""


def whole():
    """The text, or nothing where it is too long to be looked at again."""
    return "".join(_lines) if sum(map(len, _lines)) <= _PARSED_MAX else ""


def span(code, line, instruction):
    """(first line, first byte, last line, byte after it) of an instruction; None before 3.11, and where it is not known."""
    if not hasattr(code, "co_positions") or instruction < 0:
        return None
    start, end, first, last = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return (start, first, end, last) if start == line and None not in (end, first, last) else None


def column(place):
    """The column of a span, from 1, in characters."""
    line, byte = place[:2]
    return _characters(line, byte) + 1


def excerpt(number, place=None, indent="    "):
    """A line and, where the span is a part of it, carets below that part; of a long line what is around them."""
    text = line_of(number)
    shown = text.strip()
    if not shown:
        return []
    before = len(text) - len(text.lstrip())
    if place is None:
        return [indent + (shown if len(shown) <= WIDTH else shown[:WIDTH] + "…")]
    start = max(_characters(number, place[1]) - before, 0)
    end = _characters(number, place[3]) - before if place[2] == number else len(shown)
    return _marked(shown, start, end, indent)


def marked(number, offset, indent="    "):
    """The same with one caret at a column, from 1."""
    text = line_of(number)
    start = max(offset - 1 - (len(text) - len(text.lstrip())), 0)
    shown = text.strip()
    return _marked(shown, min(start, len(shown)), start + 1, indent, always=True) if shown else []


def _marked(shown, start, end, indent, always=False):
    carets = max(min(end, len(shown)) - start, 1)
    if len(shown) > WIDTH:
        cut = min(max(start - WIDTH // 2, 0), len(shown) - WIDTH)
        head, tail = "…" if cut else "", "…" if cut + WIDTH < len(shown) else ""
        shown = f"{head}{shown[cut:cut + WIDTH]}{tail}"
        start += len(head) - cut
        carets = min(carets, len(shown) - start)
    whole_line = start == 0 and carets >= len(shown) and not always
    return [indent + shown] if whole_line else [indent + shown, indent + " " * start + "^" * max(carets, 1)]


def _characters(number, byte):
    return len(line_of(number).encode("utf-8", "surrogatepass")[:byte].decode(errors="replace"))
