"""Source texts for tracebacks: of the current program, of earlier programs of the session, and of skills."""

import ast
import io
import linecache
import textwrap

CODE = "<code>"  # File name of the current program in tracebacks.
SKILL = "skills/"  # Prefix of the file names of skills.
# Maximum number of programs of a session whose lines tracebacks show.
# Bound: workers and programs.
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


def without_indentation(code):
    """A program without the indentation of its first line, if all of its lines have that."""
    return textwrap.dedent(code) if _indentation(code) else code


def parse(code, name, flags=0):
    """The syntax tree of a program, with the positions of the submitted text. A program may be indented as a whole."""
    plain = without_indentation(code)
    width = _indentation(code) - _indentation(plain)
    try:
        tree = compile(plain, name, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    except SyntaxError as error:
        error.offset = error.offset + width if error.offset else error.offset
        raise
    for node in ast.walk(tree) if width else ():
        if hasattr(node, "col_offset"):
            node.col_offset += width
            node.end_col_offset += width
    return tree


def _indentation(code):
    """The number of characters before the first word of a program, in its line."""
    return len(code[:len(code) - len(code.lstrip())].rpartition("\n")[2])
