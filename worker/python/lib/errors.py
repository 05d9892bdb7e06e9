"""Error reports for failed code: traceback of the code's own frames, message, and hint."""

import builtins
import re
import traceback
import warnings
from collections import deque

import lockhouse_excerpts as excerpts
import lockhouse_sources as sources
from lockhouse_calls import NAMES_MAX, ToolError
from lockhouse_check import CheckError
from lockhouse_excerpts import Location
from lockhouse_hints import hint, sandbox_explanation

MAX_MESSAGE = 1_000
MAX_TRACEBACK = 4_096
MAX_LINE = 200  # Characters of the message of a cause.
MAX_CAUSES = 3
_FRAMES_MAX = 100  # Frames of one traceback that are looked at, the innermost ones.


class ExecutionInterrupted(KeyboardInterrupt):
    """Raised by the supervisor's interrupt. Derived from KeyboardInterrupt, which asyncio does not catch."""


class CpuLimitReached(KeyboardInterrupt):
    """Raised by SIGXCPU, when the CPU limit is reached."""


# Name under which code that catches all exceptions sees these classes.
for _class in ExecutionInterrupted, CpuLimitReached:
    _class.__name__ = _class.__qualname__ = "TimeoutError"
    _class.__module__ = "builtins"


def report(error, awaiting=None):
    """Describes an error as a dict of bounded fields. `awaiting` is the main coroutine, if there is one."""
    frames = _frames(error.__traceback__) or _coroutine_frames(awaiting)
    location = _innermost_location(error.__traceback__, frames)
    if isinstance(error, CheckError):
        location = Location(None, error.filename, error.lineno, (error.lineno, error.offset, error.lineno, error.end))
    line, column = location.line, excerpts.column(location)
    if _is_in_source(error) and not frames:
        line, column = _positive(error.lineno), _positive(error.offset)
    if isinstance(error, MemoryError):
        location.frame = None
        _release(error)
    message = _message(error, line) + _place_in_skill(frames)
    cause = _first_of_group(error)
    if cause is not error:
        # The message of a group names none of its errors.
        message, location = f"{message}: {_in_one_line(cause)}", _innermost_location(cause.__traceback__, _frames(cause.__traceback__))
    return {
        "kind": class_name(error),
        "code": _clean(error.code, 100) if isinstance(error, ToolError) else None,
        "message": message,
        "line": line,
        "column": column,
        "traceback": _bounded(_describe(error, frames)) or None,
        "hint": hint(cause, _message(cause), location),
    }


def _place_in_skill(frames):
    """Where the error was raised, if that is in a skill: the line of the report is that of the program."""
    code, line, _ = frames[-1] if frames else (None, None, None)
    return f", in {code.co_filename}, line {line}" if code and code.co_filename.startswith(sources.SKILL) else ""


def _first_of_group(error):
    """The first error that is no group of an error and the errors within it."""
    while isinstance(error, _GROUP) and error.exceptions:
        error = error.exceptions[0]
    return error


def _release(error):
    """Frees what the frames and context of an error hold, since formatting needs memory and there may be millions of frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Suppresses warnings about coroutines that were never awaited.
        error.__traceback__ = error.__context__ = error.__cause__ = None


def class_name(error):
    """Name of an error's class, regardless of its metaclass."""
    return _clean(_CLASS["__name__"].__get__(type(error)), 200)


_CLASS = type.__dict__


def _positive(number):
    return number if type(number) is int and 0 < number < 1 << 31 else None


def traceback_text(error):
    """Formats an error with its message, for errors that do not end the program."""
    frames = _frames(error.__traceback__)
    message = _clean(_message(error, frames[-1][1] if frames else None), MAX_MESSAGE)
    return _bounded("\n".join(filter(None, [_describe(error, frames), f"{_full_name(error)}: {message}" if message else _full_name(error)])))


def _frames(trace):
    """Collects (code, line, instruction) for the code's own frames, outermost first: of a long traceback, the innermost ones and the
    innermost one of the current program."""
    frames, own = deque(maxlen=_FRAMES_MAX), None
    while trace is not None:
        code = trace.tb_frame.f_code
        if sources.is_code(code.co_filename):
            frames.append((code, trace.tb_lineno, trace.tb_lasti))
            own = frames[-1] if sources.is_current(code.co_filename) else own
        trace = trace.tb_next
    return list(frames) if own is None or own in frames else [own, *frames]


def _coroutine_frames(coroutine):
    """Collects the frames of a suspended coroutine, which are not on the stack when the event loop is interrupted."""
    frames = []
    while getattr(coroutine, "cr_frame", None) is not None:
        frame = coroutine.cr_frame
        if sources.is_code(frame.f_code.co_filename):
            frames.append((frame.f_code, frame.f_lineno, frame.f_lasti))
        coroutine = coroutine.cr_await
    return frames


def _innermost_location(trace, frames):
    """Location of the innermost frame in the current program."""
    own = [frame for frame in frames if sources.is_current(frame[0].co_filename)]
    if not own:
        return Location(None, None, None, None)
    innermost = None
    while trace is not None:
        if sources.is_current(trace.tb_frame.f_code.co_filename):
            innermost = trace.tb_frame
        trace = trace.tb_next
    code, line, instruction = own[-1]
    return Location(innermost, code.co_filename, line, excerpts.span(code, line, instruction))


def _describe(error, frames):
    """Formats the innermost frame of the program, and below it one line for each cause and each error of a group."""
    lines = [line for frame in _shown_frames(frames) for line in _format_frame(*frame)]
    if isinstance(error, CheckError):
        span = error.lineno, error.offset, error.lineno, error.end
        lines.append(f'  File "{sources.display_name(error.filename)}", line {error.lineno}, found before the run: no call was sent')
        lines.extend(excerpts.excerpt(error.filename, error.lineno, span))
    if _is_in_source(error):
        lines.append(f'  File "{sources.display_name(error.filename)}", line {error.lineno}')
        if _positive(error.lineno) and _positive(error.offset):
            lines.extend(excerpts.excerpt_at_column(error.filename, error.lineno, error.offset))
    lines += [f"  {_clean(note, MAX_LINE)}" for note in getattr(error, "__notes__", None) or ()]
    for inner in getattr(error, "exceptions", ())[:NAMES_MAX] if isinstance(error, _GROUP) else ():
        lines.append(f"  + {_in_one_line(inner)}")
    return "\n".join([*lines, *_causes(error)])


def _shown_frames(frames):
    """The innermost frame of the current program; if that has called a skill or a function of an earlier run, their innermost as well."""
    own = [frame for frame in frames if sources.is_current(frame[0].co_filename)][-1:]
    return own if own and own[0] is frames[-1] else own + frames[-1:]


def _format_frame(code, line, instruction):
    span = excerpts.span(code, line, instruction)
    name = sources.display_name(code.co_filename)
    return [f'  File "{name}", line {line}, in {code.co_name}', *excerpts.excerpt(code.co_filename, line, span)]


def _causes(error):
    """One line for each error that led to this one, as far as Python would show it."""
    seen = {id(error)}
    while len(seen) <= MAX_CAUSES and not isinstance(error, MemoryError):  # The context of a MemoryError is the same error again.
        words = "caused by" if error.__cause__ is not None else "while handling"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if error is None or id(error) in seen:
            return
        seen.add(id(error))
        # A CancelledError of a library is only the way in which a timeout ends a task.
        if class_name(error) != "CancelledError" or _frames(error.__traceback__):
            yield f"  {words} {_in_one_line(error)}"


def _in_one_line(error):
    frames = _frames(error.__traceback__)
    where = f" (line {frames[-1][1]})" if frames and sources.is_current(frames[-1][0].co_filename) else ""
    return f"{_full_name(error)}: {_clean(_message(error), MAX_LINE)}{where}"


def _full_name(error):
    """Name of an error's class, with its module if that is neither the program nor the language."""
    module = _CLASS["__module__"].__get__(type(error))
    prefix = "" if module in ("builtins", "__main__", "mcp_tools", __name__) else f"{_clean(module, 200)}."
    return f"{prefix}{_clean(_CLASS['__qualname__'].__get__(type(error)), 200)}"


_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # Since Python 3.11.


def _is_in_source(error):
    return isinstance(error, SyntaxError) and type(error.filename) is str and sources.is_current(error.filename)


# The file of a module is irrelevant to the code and would reveal paths of the host.
_FILE_OF_MODULE = re.compile(r" \((?:unknown location|[^()]*/[^()]*)\)$")
# Messages for errors that often have none.
_DEFAULT_MESSAGES = {
    "KeyboardInterrupt": "the code raised it itself",
    "TimeoutError": "the time that the code itself allowed is over",
    "CancelledError": "it was cancelled",
    "StopIteration": "the iterator has nothing more; next(iterator, default) gives a default instead",
}


def _message(error, line=None):
    if isinstance(error, ExecutionInterrupted):
        return "the execution was interrupted: its time is up or it was cancelled"
    if isinstance(error, CpuLimitReached):
        return "the execution used up its CPU time"
    if isinstance(error, MemoryError) and not error.args:
        return "the execution used up its memory"
    if isinstance(error, SystemExit):
        return f"the code called exit({_clean(error.code, 200)})"
    message = _clean(error.msg if _is_in_source(error) else error, MAX_MESSAGE)
    if isinstance(error, ImportError):
        message = _FILE_OF_MODULE.sub("", message)
    if not message and isinstance(error, AssertionError):
        return f"it does not hold: {_clean(excerpts.current_line(line).strip(), 200)}" if line else "it does not hold"
    if not message:
        message = _DEFAULT_MESSAGES.get(_CLASS["__name__"].__get__(type(error)), "")
    try:
        words = sandbox_explanation(error, message)
    except Exception:  # An attribute of an error class in the code may raise.
        words = None
    return f"{message} ({words})" if words and message else words or message


def _clean(value, limit):
    """Converts any value to a bounded string of valid UTF-8."""
    try:
        whole = str(value)
        if len(whole) > limit:
            head, tail = limit // 3 * 2, limit // 3
            whole = f"{whole[:head]} … {len(whole) - head - tail:,} more characters … {whole[-tail:]}"
        return whole.encode("utf-8", "backslashreplace").decode()
    except Exception as error:
        return f"<{type(value).__name__} whose str() raises {type(error).__name__}>"


def _bounded(whole):
    whole = _clean(whole, 1 << 20)
    if len(whole) <= MAX_TRACEBACK:
        return whole
    start, end = whole[:MAX_TRACEBACK // 3], whole[-MAX_TRACEBACK // 2:]
    return f"{start.rpartition(chr(10))[0]}\n  … left out …\n{end.partition(chr(10))[2] or end}"


def hide_own_frames():
    """Removes the engine's frames from tracebacks that the code itself prints."""
    for name in ("walk_tb", "_walk_tb_with_full_positions"):
        original = getattr(traceback, name, None)
        if original is not None:
            setattr(traceback, name, _without_engine_frames(original))
    walk_stack = traceback.walk_stack
    hiding = _without_engine_frames(walk_stack)
    # Without a frame, walk_stack counts the frames of its callers, so it must stay unchanged.
    traceback.walk_stack = lambda frame: walk_stack(frame) if frame is None else hiding(frame)


def _without_engine_frames(walk):
    def walk_without_engine_frames(start):
        for item in walk(start):
            name = str(item[0].f_globals.get("__name__"))
            if not name.startswith(("lockhouse_", "mcp_tools")) and name != "skills":
                yield item

    return walk_without_engine_frames
