"""Source texts for tracebacks: of the current program, of earlier programs of the session, and of skills."""

import io
import linecache

CODE = "<code>"  # File name of the current program in tracebacks.
SKILL = "skills/"  # Prefix of the file names of skills.
_PROGRAMS_MAX = 32

_lines = {}
_skills = {}
_current = CODE


def begin_program(code, run=None):
    """Registers the current program, in a session with the number of its run. Returns the file name to compile it with."""
    global _current
    _current = CODE if run is None else f"<code {run}>"
    lines = list(io.StringIO(code, newline=None))
    _lines.pop(_current, None)
    _lines[_current] = lines
    # Functions of earlier runs can raise errors, too.
    linecache.cache[_current] = (len(code), None, lines, _current)
    while len(_lines) > _PROGRAMS_MAX:
        oldest = next(iter(_lines))
        del _lines[oldest]
        linecache.cache.pop(oldest, None)
    return _current


def add_skill(name, code):
    """Registers a skill. Returns the file name to compile it with."""
    name = SKILL + name
    _skills[name] = lines = list(io.StringIO(code, newline=None))
    linecache.cache[name] = (len(code), None, lines, name)
    return name


def is_code(name):
    """Whether a file name is that of a program of this session or of a skill."""
    return name.startswith(("<code", SKILL))


def current():
    """File name of the current program."""
    return _current


def is_current(name):
    """Whether a file name is that of the current program."""
    return name == _current


def display_name(name):
    """A program's file name in tracebacks."""
    return CODE if name == _current else name


def lines_of(name):
    """The lines of a program or skill with line breaks; empty if unknown."""
    return _lines.get(name) or _skills.get(name, ())


def line(name, number):
    """A line of a program with its line break; empty if unknown."""
    lines = lines_of(name)
    return lines[number - 1] if number and 0 < number <= len(lines) else ""


def program_text(characters_max):
    """The current program; empty if it is longer than the maximum."""
    lines = _lines.get(_current, ())
    return "".join(lines) if sum(map(len, lines)) <= characters_max else ""
