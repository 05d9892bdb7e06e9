"""The tools as async functions: `from mcp_tools.aio import github`, then `await github.list_issues(...)`.

Calls that are started in one iteration of the event loop are sent together. Replies are matched to calls by number,
whichever event loop or thread reads them.
"""

import asyncio as _asyncio
import inspect as _inspect
import sys as _sys
import threading as _threading
import weakref as _weakref

import _lockhouse
from lockhouse_calls import calling_line as _calling_line, milliseconds as _milliseconds, unwrap_reply as _unwrap_reply
from lockhouse_resources import FUNCTIONS as _resources
from lockhouse_servers import server_attribute as _server_attribute
from lockhouse_streams import flush as _flush_output, require_room as _require_room
from lockhouse_results import from_envelope as _from_envelope
from mcp_tools import _parse_call

__path__ = []
_sys.modules["mcp_tools"].aio = _sys.modules[__name__]

_lock = _threading.Lock()
_waiting = {}
_listening = _weakref.WeakSet()
_flushing = _weakref.WeakSet()


def __getattr__(name):
    return _server_attribute(__name__, name)


def _as_coroutine_function(function):
    """Marks a function that returns a coroutine as a coroutine function, for `inspect` and asyncio."""
    if hasattr(_inspect, "markcoroutinefunction"):  # Since Python 3.12.
        return _inspect.markcoroutinefunction(function)
    function._is_coroutine = _asyncio.coroutines._is_coroutine
    return function


@_as_coroutine_function
def call_tool(server=None, tool=None, arguments=None, /, **named):
    """Calls a tool by name, as `mcp_tools.call_tool` does."""
    return _call_tool(_calling_line(), server, tool, arguments, named)


async def _call_tool(line, server, tool, arguments, named):
    return await call(*_parse_call(server, tool, arguments, named), line=line)


_call_tool.__name__ = _call_tool.__qualname__ = "call_tool"


async def list_resources(server):
    """Lists the resources of a server, like `mcp_tools.list_resources`."""
    return await _asyncio.to_thread(_resources["list_resources"], server)


async def read_resource(server, uri):
    """Reads a resource, like `mcp_tools.read_resource`."""
    return await _asyncio.to_thread(_resources["read_resource"], server, uri)


async def list_prompts(server):
    """Lists the prompts of a server, like `mcp_tools.list_prompts`."""
    return await _asyncio.to_thread(_resources["list_prompts"], server)


async def get_prompt(server, name, arguments=None, /, **named):
    """Gets a prompt, like `mcp_tools.get_prompt`."""
    return await _asyncio.to_thread(_resources["get_prompt"], server, name, arguments, **named)


async def call(server, tool, arguments, timeout=None, *, line):
    """Calls a tool. `arguments` is from `encode_arguments`, `line` is the line of the program that makes the call."""
    timeout_ms = _milliseconds(timeout)
    data, texts = arguments
    _flush_output()
    _require_room(len(data))
    loop = _asyncio.get_running_loop()
    if loop not in _listening:
        loop.add_reader(_lockhouse.fileno(), _deliver)
        loop.add_reader(_lockhouse.wake_fileno(), _deliver)
        _listening.add(loop)
    with _lock:  # Otherwise another thread could receive the reply before the future is registered.
        number = _lockhouse.start_call(server, tool, data, timeout_ms, line, texts)
        if number > 0:
            future = _waiting[number] = loop.create_future()
    if number <= 0:  # The name is invalid: the call fails at once.
        return _unwrap_reply(_from_envelope, _lockhouse.call(server, tool, data), server, tool)
    if loop not in _flushing:
        _flushing.add(loop)
        loop.call_soon(_flush_calls, loop)
    try:
        reply = await future
    finally:
        with _lock:
            _waiting.pop(number, None)
    return _unwrap_reply(_from_envelope, reply, server, tool)


def _flush_calls(loop):
    _flushing.discard(loop)
    _lockhouse.flush()


def _deliver():
    here = _asyncio.get_running_loop()
    with _lock:
        replies = [(_waiting.pop(number, None), (done, payload)) for number, done, payload in _lockhouse.drain()]
    for future, reply in replies:
        if future is None:
            continue
        loop = future.get_loop()
        if loop is here:
            _settle(future, reply)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_settle, future, reply)


def _settle(future, reply):
    if not future.done():
        future.set_result(reply)
