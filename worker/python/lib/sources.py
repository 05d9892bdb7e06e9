"""The programs that tracebacks show lines of: the one that is run, and earlier ones of its session."""

import io
import linecache

CODE = "<code>"  # What people see as the file name of the program that is run.
SKILL = "skills/"  # Begins the file name of a skill that it imports.
_KEPT = 32

_lines = {}
_skills = {}
_current = CODE


def begin(code, run=None):
    """A program is run, which may be one of a session's. Gives the file name to compile it with."""
    global _current
    _current = CODE if run is None else f"<code {run}>"
    lines = list(io.StringIO(code, newline=None))
    _lines.pop(_current, None)
    _lines[_current] = lines
    # Functions of earlier runs raise errors too.
    linecache.cache[_current] = (len(code), None, lines, _current)
    while len(_lines) > _KEPT:
        oldest = next(iter(_lines))
        del _lines[oldest]
        linecache.cache.pop(oldest, None)
    return _current


def skill(name, code):
    """A skill is loaded. Gives the file name to compile it with."""
    name = SKILL + name
    _skills[name] = lines = list(io.StringIO(code, newline=None))
    linecache.cache[name] = (len(code), None, lines, name)
    return name


def is_code(name):
    """Whether a file name is that of a program, this run's or an earlier one's, or of a skill."""
    return name.startswith(("<code", SKILL))


def current():
    """The file name of the program that is run."""
    return _current


def is_current(name):
    """Whether a file name is that of the program that is run."""
    return name == _current


def shown(name):
    """A program's file name as people see it."""
    return CODE if name == _current else name


def text(name):
    """The lines of a program or skill, with their ends; none where they are not known."""
    return _lines.get(name) or _skills.get(name, ())


def line(name, number):
    """A line of a program with its end; nothing where it is not known."""
    lines = text(name)
    return lines[number - 1] if number and 0 < number <= len(lines) else ""


def whole(characters_max):
    """The program that is run, or nothing where it is longer."""
    lines = _lines.get(_current, ())
    return "".join(lines) if sum(map(len, lines)) <= characters_max else ""
