"""Source locations of instructions, and excerpts of source lines with carets."""

import itertools

import lockhouse_sources as sources

WIDTH = 100  # Maximum number of characters shown of a line.
_PARSED_MAX = 100_000


class Location:
    """Location of an error: innermost frame of the code, file name, line, and span within the line, as far as known."""

    __slots__ = ("frame", "name", "line", "span")

    def __init__(self, frame, name, line, span):
        self.frame = frame
        self.name = name
        self.line = line
        self.span = span


def current_line(number):
    """A line of the current program without its line break; empty if it does not exist."""
    return sources.line(sources.current(), number).rstrip("\r\n")


def program_text():
    """The current program; empty if it is too long to be analysed again."""
    return sources.program_text(_PARSED_MAX)


def span(code, line, instruction):
    """(first line, first byte, last line, end byte) of an instruction; None before Python 3.11, or if unknown."""
    if not hasattr(code, "co_positions") or instruction < 0:
        return None
    start, end, first, last = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return (start, first, end, last) if start == line and None not in (end, first, last) else None


def column(location):
    """The column of a location in characters, from 1; None if unknown."""
    return location.span and _characters(_line(location.name, location.line), location.span[1]) + 1


def excerpt(name, number, span=None, indent="    "):
    """A source line, with carets below the span if that is a part of the line. Long lines are shortened around the span."""
    text = _line(name, number)
    shown = text.strip()
    if not shown:
        return []
    before = len(text) - len(text.lstrip())
    if span is None:
        return [indent + (shown if len(shown) <= WIDTH else shown[:WIDTH] + "…")]
    start = max(_characters(text, span[1]) - before, 0)
    end = _characters(text, span[3]) - before if span[2] == number else len(shown)
    return _with_carets(shown, start, end, indent)


def excerpt_at_column(name, number, offset, indent="    "):
    """A source line with one caret at a column, from 1."""
    text = _line(name, number)
    start = max(offset - 1 - (len(text) - len(text.lstrip())), 0)
    shown = text.strip()
    return _with_carets(shown, min(start, len(shown)), start + 1, indent, always=True) if shown else []


def _with_carets(shown, start, end, indent, always=False):
    carets = max(min(end, len(shown)) - start, 1)
    if len(shown) > WIDTH:
        cut = min(max(start - WIDTH // 2, 0), len(shown) - WIDTH)
        head, tail = "…" if cut else "", "…" if cut + WIDTH < len(shown) else ""
        shown = f"{head}{shown[cut:cut + WIDTH]}{tail}"
        start += len(head) - cut
        carets = min(carets, len(shown) - start)
    whole_line = start == 0 and carets >= len(shown) and not always
    return [indent + shown] if whole_line else [indent + shown, indent + " " * start + "^" * max(carets, 1)]


def _line(name, number):
    return sources.line(name, number).rstrip("\r\n")


def _characters(text, byte):
    return len(text.encode("utf-8", "surrogatepass")[:byte].decode(errors="replace"))
