"""The engine's entry points, in the order of a worker's life: preload, after_fork, warm, run."""

import ast
import asyncio
import builtins
import random
import signal
import sys
import threading
from types import CoroutineType, ModuleType

import lockhouse_errors as errors
import lockhouse_preload
import lockhouse_sealed
import lockhouse_servers
import lockhouse_sources as sources
import lockhouse_streams
from lockhouse_values import to_json

_RESULT = "<result>"  # No name that code could write.
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_RESERVE_BYTES = 2 * 1024 * 1024
_THREAD_STACK_BYTES = 1024 * 1024
_TRIVIAL = """
import json, asyncio
from mcp_tools import ToolError
def total(rows): return sum(row["n"] for row in rows)
rows = [{"n": n, "text": f"{n}", "even": n % 2 == 0} for n in range(10)]
print("", end="")
await asyncio.sleep(0)
json.loads(json.dumps(rows)), total(rows), 1.5, None
"""

_recursion_limit = sys.getrecursionlimit()
_set_recursion_limit = sys.setrecursionlimit


class _Execution:
    """What the one execution of a process holds, or the session whose runs they are."""

    interruptible = False
    loop = None
    coroutine = None
    reserve = None
    first_main = None
    session_main = None
    runs = 0


def preload(extra):
    """In the zygote: loads everything; gives interpreter and version. ImportError if one of `extra` is missing."""
    lockhouse_preload.preload(extra)
    # Stacks of 8 MiB, which are common, would use up a worker's memory limit with some thirty threads.
    threading.stack_size(_THREAD_STACK_BYTES)
    errors.hide_own_frames()
    lockhouse_sealed.seal()
    threading.excepthook = _thread_failed
    _keep_reserve()  # Here, so that it is no part of what the code may use.
    _Execution.first_main = sys.modules["__main__"]
    lockhouse_preload.settle()
    name = {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {'.'.join(map(str, sys.version_info[:3]))}"


def after_fork():
    """In the worker, before the seal: randomness, streams and interrupts of its own."""
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    lockhouse_streams.install()
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGXCPU, _interrupt)


def _interrupt(number, frame):
    if _Execution.interruptible:
        raise errors.CpuLimitReached if number == signal.SIGXCPU else errors.ExecutionInterrupted


def warm():
    """In the sealed worker, before anyone waits: touches the pages that a program will touch."""
    _event_loop()
    run(_TRIVIAL, [])
    run("1 / 0", [])


def run(code, servers, session=False):
    """Runs one program: ("value", JSON or None), or how it failed and the parts of a report."""
    try:
        try:
            _keep_reserve()
            _Execution.interruptible = True
            lockhouse_servers.begin(servers)
            value = _execute(code, _main_of_session() if session else _main(), sources.begin(code, _run_of(session)))
            answer = "value", None if value is None else to_json(value)
            lockhouse_sealed.tell_unsaid()
            lockhouse_streams.flush()
        finally:
            _Execution.interruptible = False
        return answer
    except BaseException as error:
        _Execution.interruptible = False
        return _failed(error)


def _keep_reserve():
    """Address space that the code cannot take, for the report of its error. The run before may have used it, as warming up does.
    Without any, CPython (seen from 3.11 to 3.13) may look for the handler of a MemoryError for ever: it makes an integer for that."""
    if _Execution.reserve is None:
        try:
            _Execution.reserve = bytes(_RESERVE_BYTES)  # Whose pages stay untouched.
        except MemoryError:
            pass  # In a session, whose code may be about to free some.


def _main():
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    return main


def _main_of_session():
    """The module whose names stay from run to run."""
    if _Execution.session_main is None:
        _Execution.session_main = _main()
    return _Execution.session_main


def _run_of(session):
    if session:
        _Execution.runs += 1
        return _Execution.runs
    return None


def _execute(code, main, filename):
    _Execution.coroutine = None
    names = main.__dict__
    names.pop(_RESULT, None)
    sys.modules["__main__"] = main
    result = eval(_compiled(code, filename), names)
    if isinstance(result, CoroutineType):
        _finish(result)
    value = names.pop(_RESULT, None)
    # A coroutine as the result, such as `main()`: whoever writes that wants what it returns.
    return _finish(value) if isinstance(value, CoroutineType) else value


def _compiled(code, filename):
    """The program, with its last expression stored under a name that it cannot use."""
    try:
        tree = compile(code, filename, "exec", ast.PyCF_ONLY_AST | _FLAGS, dont_inherit=True)
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = tree.body[-1]
            name = ast.copy_location(ast.Name(_RESULT, ast.Store()), last)
            tree.body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
        return compile(tree, filename, "exec", _FLAGS, dont_inherit=True)
    except (MemoryError, RecursionError):  # The parser's words for its own limits.
        raise SyntaxError("the code is nested too deeply") from None


def _finish(coroutine):
    _Execution.coroutine = coroutine
    return _event_loop().run_until_complete(coroutine)


def _event_loop():
    if _Execution.loop is None or _Execution.loop.is_closed():
        _Execution.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_Execution.loop)
    return _Execution.loop


def _drop_loop():
    """In a session: what a stopped run was at, and the tasks that it had started, end with it."""
    loop, _Execution.loop = _Execution.loop, None
    if loop is not None:
        loop.set_exception_handler(lambda loop, context: None)
        loop.close()


def _failed(error):
    """The report of an error. Whatever goes wrong in here, there is an answer."""
    kind = "error"
    try:
        _Execution.reserve = None
        _set_recursion_limit(_recursion_limit)
        if isinstance(error, SystemExit) and error.code in (None, 0):
            lockhouse_streams.flush()
            return "value", None
        if isinstance(error, MemoryError):
            kind = "memory"
        elif isinstance(error, errors.ExecutionInterrupted):
            kind = "interrupted"
        elif isinstance(error, errors.CpuLimitReached):
            kind = "cpu"
        report = errors.report(error, _Execution.coroutine)
        if _Execution.session_main is not None and kind in ("interrupted", "cpu"):
            _drop_loop()
    except BaseException:
        report = {"kind": errors.name_of(error), "code": None, "message": "the error cannot be described", "line": None,
                  "column": None, "traceback": None, "hint": None}
    try:
        lockhouse_streams.flush()
    except BaseException:
        pass  # The answer matters more than the last lines of output.
    return kind, report


def _thread_failed(failure):
    """An error that ends a thread: told on the code's stderr, without frames of ours or of `threading`."""
    if failure.exc_type is not SystemExit:
        name = failure.thread.name if failure.thread else "?"
        print(f"Exception in thread {name}:\n{errors.text(failure.exc_value)}", file=sys.stderr)
