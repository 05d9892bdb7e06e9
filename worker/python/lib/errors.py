"""Error reports for failed code: traceback of the code's own frames, message, and hint."""

import builtins
import re
import traceback
import warnings

import lockhouse_excerpts as excerpts
import lockhouse_sources as sources
from lockhouse_calls import ToolError
from lockhouse_excerpts import Location
from lockhouse_hints import hint, sandbox_explanation

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 4_096
MAX_CHAIN = 4
MAX_REPEATED = 120  # Characters of a message that the traceback repeats.
_COLLAPSE = 3
_END_FRAMES = 100  # Frames that are kept at each end of a traceback; more than are shown.
_CARET_FRAMES = 20  # Innermost frames that are shown with carets.


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
    line, column = location.line, excerpts.column(location)
    if _is_in_source(error) and not frames:
        line, column = _positive(error.lineno), _positive(error.offset)
    is_limit = isinstance(error, (ExecutionInterrupted, CpuLimitReached)) or type(error) is MemoryError and not error.args
    if isinstance(error, MemoryError):
        location.frame = None
        _release(error)
    message = _message(error, line)
    chain = _chain(error, frames)
    if is_limit:  # The supervisor adds which limit was reached.
        chain = chain.rpartition("\n")[0]
    return {
        "kind": class_name(error),
        "code": _clean(error.code, 100) if isinstance(error, ToolError) else None,
        "message": message,
        "line": line,
        "column": column,
        "traceback": _bounded(chain) or None,
        "hint": hint(error, message, location),
    }


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
    """Formats the traceback of an error."""
    return _bounded(_chain(error, _frames(error.__traceback__), alone=True))


def _frames(trace):
    """Collects (code, line, instruction, repetitions) for the code's own frames, outermost first; long tracebacks keep both ends."""
    frames = []
    while trace is not None:
        if sources.is_code(trace.tb_frame.f_code.co_filename):
            code, line, times = trace.tb_frame.f_code, trace.tb_lineno, 1
            if frames and frames[-1][:2] == (code, line):
                times += frames.pop()[3]
            frames.append((code, line, trace.tb_lasti, times))
            if len(frames) > 4 * _END_FRAMES:
                frames[_END_FRAMES:-_END_FRAMES] = []
        trace = trace.tb_next
    return frames


def _coroutine_frames(coroutine):
    """Collects the frames of a suspended coroutine, which are not on the stack when the event loop is interrupted."""
    frames = []
    while getattr(coroutine, "cr_frame", None) is not None:
        frame = coroutine.cr_frame
        if sources.is_code(frame.f_code.co_filename):
            frames.append((frame.f_code, frame.f_lineno, frame.f_lasti, 1))
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
    code, line, instruction, _ = own[-1]
    return Location(innermost, code.co_filename, line, excerpts.span(code, line, instruction))


def _chain(error, frames, alone=False):
    parts, seen = [], set()
    link = None
    while error is not None and len(parts) < MAX_CHAIN and id(error) not in seen:
        seen.add(id(error))
        # A CancelledError of a library is only the way in which a timeout ends a task.
        if frames or not parts or class_name(error) != "CancelledError":
            parts.append(_describe_one(error, frames, brief=not parts and not alone) + (f"\n\n{link}\n\n" if link else ""))
        if isinstance(error, MemoryError):
            break  # The context of a MemoryError is the same error again.
        if error.__cause__ is not None:
            error, link = error.__cause__, "The above exception was the direct cause of the following exception:"
        elif error.__context__ is not None and not error.__suppress_context__:
            error, link = error.__context__, "During handling of the above exception, another exception occurred:"
        else:
            break
        frames = _frames(error.__traceback__)
    return "".join(reversed(parts))


def _describe_one(error, frames, brief):
    """Formats one error of a chain. With `brief`, a long message is omitted, since the report contains it elsewhere."""
    lines = ["Traceback (most recent call last):"] if frames else []
    for number, (code, line, instruction, times) in enumerate(frames):
        span = excerpts.span(code, line, instruction) if number >= len(frames) - _CARET_FRAMES else None
        name = sources.display_name(code.co_filename)
        entry = [f'  File "{name}", line {line}, in {code.co_name}', *excerpts.excerpt(code.co_filename, line, span)]
        lines.extend(entry * min(times, _COLLAPSE))
        if times > _COLLAPSE:
            lines.append(f"  [Previous line repeated {times - _COLLAPSE} more times]")
    if _is_in_source(error):
        lines.append(f'  File "{sources.display_name(error.filename)}", line {error.lineno}')
        if _positive(error.lineno) and _positive(error.offset):
            lines.extend(excerpts.excerpt_at_column(error.filename, error.lineno, error.offset))
    module = _CLASS["__module__"].__get__(type(error))
    prefix = "" if module in ("builtins", "__main__", __name__) else f"{_clean(module, 200)}."
    message = _clean(_message(error, frames[-1][1] if frames else None), MAX_MESSAGE // 2)
    name = _clean(_CLASS["__qualname__"].__get__(type(error)), 200)
    is_repeated = not message or brief and len(message) > MAX_REPEATED
    lines.append(f"{prefix}{name}" if is_repeated else f"{prefix}{name}: {message}")
    for note in getattr(error, "__notes__", None) or ():
        lines.append(_clean(note, 200))
    for inner in getattr(error, "exceptions", ())[:10] if isinstance(error, _GROUP) else ():
        own = _frames(inner.__traceback__)
        where = f" (line {own[-1][1]})" if own else ""
        lines.append(f"  + {class_name(inner)}{where}: {_clean(_message(inner), 200)}")
    return "\n".join(lines)


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
