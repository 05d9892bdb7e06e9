"""Entry points of the engine, in the order in which they are called: preload, after_fork, warm, run."""

import ast
import asyncio
import builtins
import random
import signal
import sys
import threading
from types import CoroutineType, ModuleType

import _lockhouse
import lockhouse_check
import lockhouse_denied_modules
import lockhouse_dialects
import lockhouse_errors as errors
import lockhouse_files
import lockhouse_final_value
import lockhouse_host_files
import lockhouse_server_files
import lockhouse_preload
import lockhouse_refusals
import lockhouse_servers
import lockhouse_sources as sources
import lockhouse_streams
from lockhouse_values import to_json

_RESULT = lockhouse_check.RESULT
_NO_VALUE = object()  # None is a value.
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_RESERVE_BYTES = 2 * 1024 * 1024
_WARM_UPS_IN_ZYGOTE = 8  # CPython 3.11 and later specialize code that has run this often.
_THREAD_STACK_BYTES = 1024 * 1024
_WARM_UP_IN_ZYGOTE = """
import json
from mcp_tools import ToolError
def total(rows): return sum(row["n"] for row in rows)
rows = [{"n": n, "text": f"{n}", "even": n % 2 == 0} for n in range(10)]
print("", end="")
json.loads(json.dumps(rows)), total(rows), 1.5, None
"""
# The worker answers the call itself, see worker/src/warm_up_host.rs.
_WARM_UP_TOOLS = '[["warm_up", "add", {"name": "add", "identifier": "add", "parameters": ["a", "b"]}]]'
_WARM_UP = """
import json, asyncio
from mcp_tools import ToolError
from mcp_tools.warm_up import add
def total(rows): return sum(row["n"] for row in rows)
rows = [{"n": n, "text": f"{n}", "even": n % 2 == 0} for n in range(10)]
print("", end="")
await asyncio.sleep(0)
add(a=1, b=2)["n"]
json.loads(json.dumps(rows)), total(rows), 1.5, None
"""

_main_thread = threading.main_thread()
_recursion_limit = sys.getrecursionlimit()
_set_recursion_limit = sys.setrecursionlimit


class _Execution:
    """State of the process: of its only run, or of the session and its runs."""

    interruptible = False
    loop = None
    coroutine = None
    advice = None
    only_prints = False
    returns_nothing = False
    first_main = None
    session_main = None
    runs = 0


def preload(modules, packages, recipes, elsewhere, denied_modules):
    """Called in the zygote: loads all modules and packages. Returns interpreter with version, and a description of each package.
    `elsewhere` has the names of modules that workers of another zygote have, and `denied_modules` of those that programs may not import. Raises ImportError if a module or package is missing.
    """
    loaded = lockhouse_preload.preload(modules, packages, recipes)
    # Thread stacks of the usual 8 MiB would exhaust a worker's memory limit with about thirty threads.
    threading.stack_size(_THREAD_STACK_BYTES)
    errors.hide_own_frames()
    lockhouse_files.install()
    lockhouse_host_files.install()
    lockhouse_server_files.install()
    lockhouse_refusals.install(elsewhere)
    lockhouse_dialects.install()
    lockhouse_denied_modules.install(denied_modules)
    threading.excepthook = _report_thread_error
    _Execution.first_main = sys.modules["__main__"]
    lockhouse_streams.install()
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGXCPU, _interrupt)
    # What a first run writes to memory once and for all is written here, so that no worker must copy these pages.
    for _ in range(_WARM_UPS_IN_ZYGOTE):
        run(_WARM_UP_IN_ZYGOTE, [])
        run("1 / 0", [])
    sys.modules["__main__"] = _Execution.first_main
    _keep_reserve()  # Allocated here, so that it does not count as memory of the code.
    lockhouse_preload.freeze_memory()
    name = {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {'.'.join(map(str, sys.version_info[:3]))}", loaded


def after_fork():
    """Called in the worker before the sandbox is entered: reseeds random generators."""
    random.seed()
    if "lockhouse_packages" in sys.modules:
        sys.modules["lockhouse_packages"].reseed()
    _main_thread._set_native_id()


def _interrupt(number, frame):
    if _Execution.interruptible:
        raise errors.CpuLimitReached if number == signal.SIGXCPU else errors.ExecutionInterrupted


def warm():
    """Called in the sealed worker while it is idle: runs trivial programs, so that their memory pages are mapped."""
    _event_loop()
    run(_WARM_UP, ["warm_up"], tools=_WARM_UP_TOOLS)
    run("1 / 0", [])


def run(code, servers, session=False, check_only=False, tools="", host_files="", left_out=""):
    """Runs a program, or only checks it. Returns ("value", JSON or None for no value), ("no_value", advice), or the kind of failure and a
    dict that describes it."""
    # CPython 3.11 to 3.13 allocate an integer to enter some handlers, such as `finally`, in a long function. When no memory is
    # left, they try again forever. The handler of `except` in a short function needs none.
    try:
        return _answer(code, servers, session, check_only, tools, host_files, left_out)
    except BaseException as error:
        _Execution.interruptible = False
        return _describe_failure(error)


def _answer(code, servers, session, check_only, tools, host_files, left_out):
    _keep_reserve()
    _Execution.interruptible = True
    lockhouse_servers.begin_run(servers, tools, left_out)
    lockhouse_dialects.begin_run()
    lockhouse_streams.begin_run()
    if session:
        lockhouse_files.begin_run()
    lockhouse_host_files.begin_run(host_files)
    main, filename = _session_module() if session else _new_main_module(), sources.begin_program(code, _run_number(session))
    value = _execute(code, main, filename, check_only)
    if value is not _NO_VALUE:
        answer = "value", to_json(value)
    else:
        answer = ("no_value", _Execution.advice) if _Execution.advice else ("value", None)
    lockhouse_files.save_all()
    lockhouse_host_files.send_outputs()
    lockhouse_refusals.warn_of_hidden_refusals()
    lockhouse_streams.flush()
    _Execution.interruptible = False
    return answer


def _is_lost_memory_error(error):
    """Whether the memory is used up, and CPython has lost the MemoryError: compiled functions of asyncio report the failure
    without an exception (seen in 3.11).
    """
    if type(error) is not SystemError:
        return False
    try:
        _lockhouse.require_memory(_RESERVE_BYTES)
    except MemoryError:
        return True
    return False


def _keep_reserve():
    """Reserves address space for the report of an error. An earlier run may have used the reserve up.
    Without it, CPython (seen in 3.11 to 3.13) may loop forever looking for the handler of a MemoryError, since it allocates an integer for that.
    """
    try:
        _lockhouse.keep_reserve(_RESERVE_BYTES)
    except MemoryError:
        pass  # In a session, the code may free memory later.


def _new_main_module():
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    return main


def _session_module():
    """The `__main__` module of the session, whose variables persist between runs."""
    if _Execution.session_main is None:
        _Execution.session_main = _new_main_module()
    return _Execution.session_main


def _run_number(session):
    if session:
        _Execution.runs += 1
        return _Execution.runs
    return None


def _execute(code, main, filename, check_only):
    _Execution.coroutine = None
    names = main.__dict__
    names.pop(_RESULT, None)
    sys.modules["__main__"] = main
    tree, program = _compile(code, filename)
    lockhouse_dialects.offer(program, tree, names)
    lockhouse_check.check(tree, code, names)
    if check_only:
        return _NO_VALUE
    del tree
    result = eval(program, names)
    if isinstance(result, CoroutineType):
        _run_coroutine(result)
    value = names.pop(_RESULT, _NO_VALUE)
    # If the result is a coroutine, as for `main()`, its return value is wanted.
    value = _run_coroutine(value) if isinstance(value, CoroutineType) else value
    return _NO_VALUE if value is None and _is_output() else value


def _is_output():
    """Whether the program ends with output, and its last expression was None only for this reason."""
    return _Execution.only_prints or _Execution.returns_nothing and lockhouse_streams.has_printed()


def _compile(code, filename):
    """Returns the syntax tree of the program, and its code, which assigns the last expression to a reserved name."""
    try:
        tree = sources.parse(code, filename, _FLAGS)
        body = _final_block(tree.body)
        lockhouse_final_value.call_last_function(tree, body)
        _Execution.advice, _Execution.only_prints = lockhouse_final_value.advice(body), lockhouse_final_value.only_prints(body)
        _Execution.returns_nothing = lockhouse_final_value.returns_nothing(tree, body)
        if body and isinstance(body[-1], ast.Expr):
            last = body[-1]
            name = ast.copy_location(ast.Name(_RESULT, ast.Store()), last)
            body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
        return tree, compile(tree, filename, "exec", _FLAGS, dont_inherit=True)
    except (MemoryError, RecursionError):  # Raised by the parser for its own limits.
        raise SyntaxError("the code is nested too deeply") from None


def _final_block(body):
    """The statements whose last one is the result: those of the program, or of `if __name__ == "__main__":` at its end."""
    last = body[-1] if body else None
    if isinstance(last, ast.If) and not last.orelse and isinstance(last.test, ast.Compare):
        left = last.test.left
        if isinstance(left, ast.Name) and left.id == "__name__" and isinstance(last.test.ops[0], ast.Eq):
            return last.body
    return body


def _run_coroutine(coroutine):
    _Execution.coroutine = coroutine
    return _event_loop().run_until_complete(coroutine)


def _event_loop():
    if _Execution.loop is None or _Execution.loop.is_closed():
        _Execution.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_Execution.loop)
    return _Execution.loop


def _close_loop():
    """Closes the event loop of an interrupted run in a session, with all tasks of the run."""
    loop, _Execution.loop = _Execution.loop, None
    if loop is not None:
        loop.set_exception_handler(lambda loop, context: None)
        loop.close()


def _describe_failure(error):
    """Describes an error for the reply. Never raises."""
    kind = "error"
    try:
        is_memory = isinstance(error, MemoryError) or _is_lost_memory_error(error)
        _lockhouse.release_reserve()
        _set_recursion_limit(_recursion_limit)
        if isinstance(error, SystemExit) and error.code in (None, 0):
            lockhouse_streams.flush()
            return "value", None
        if is_memory:
            kind = "memory"
        elif isinstance(error, errors.ExecutionInterrupted):
            kind = "interrupted"
        elif isinstance(error, errors.CpuLimitReached):
            kind = "cpu"
        report = errors.report(error, _Execution.coroutine)
        if _Execution.session_main is not None and kind in ("interrupted", "cpu"):
            _close_loop()
    except BaseException:
        report = {"kind": errors.class_name(error), "code": None, "message": "the error cannot be described", "line": None,
                  "column": None, "traceback": None, "hint": None}
    try:
        lockhouse_streams.flush()
    except BaseException:
        pass  # The reply is more important than the last lines of output.
    return kind, report


def _report_thread_error(failure):
    """Prints an error that ends a thread on stderr, without frames of the engine or of `threading`."""
    if failure.exc_type is not SystemExit:
        name = failure.thread.name if failure.thread else "?"
        print(f"Exception in thread {name}:\n{errors.traceback_text(failure.exc_value)}", file=sys.stderr)
