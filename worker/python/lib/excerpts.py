"""Where an instruction stands in a program's text, and a line of it with carets."""

import itertools

import lockhouse_sources as sources

WIDTH = 100  # Characters of a line that are shown.
_PARSED_MAX = 100_000


class Place:
    """Where an error is: the code's innermost frame, its line, and what part of the line, as far as they are known."""

    __slots__ = ("frame", "name", "line", "span")

    def __init__(self, frame, name, line, span):
        self.frame = frame
        self.name = name
        self.line = line
        self.span = span


def current_line(number):
    """A line of the program that is run, without its end; empty where there is none."""
    return sources.line(sources.current(), number).rstrip("\r\n")


def whole():
    """The program that is run, or nothing where it is too long to be looked at again."""
    return sources.whole(_PARSED_MAX)


def span(code, line, instruction):
    """(first line, first byte, last line, byte after it) of an instruction; None before 3.11, and where it is not known."""
    if not hasattr(code, "co_positions") or instruction < 0:
        return None
    start, end, first, last = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return (start, first, end, last) if start == line and None not in (end, first, last) else None


def column(place):
    """The column of a place, from 1, in characters; None where it is not known."""
    return place.span and _characters(_line(place.name, place.line), place.span[1]) + 1


def excerpt(name, number, span=None, indent="    "):
    """A line and, where the span is a part of it, carets below that part; of a long line what is around them."""
    text = _line(name, number)
    shown = text.strip()
    if not shown:
        return []
    before = len(text) - len(text.lstrip())
    if span is None:
        return [indent + (shown if len(shown) <= WIDTH else shown[:WIDTH] + "…")]
    start = max(_characters(text, span[1]) - before, 0)
    end = _characters(text, span[3]) - before if span[2] == number else len(shown)
    return _marked(shown, start, end, indent)


def marked(name, number, offset, indent="    "):
    """The same with one caret at a column, from 1."""
    text = _line(name, number)
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


def _line(name, number):
    return sources.line(name, number).rstrip("\r\n")


def _characters(text, byte):
    return len(text.encode("utf-8", "surrogatepass")[:byte].decode(errors="replace"))
