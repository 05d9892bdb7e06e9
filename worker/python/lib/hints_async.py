"""Hints for values where asyncio takes coroutines: results of functions that are not async."""

import ast
from inspect import iscoroutinefunction
from types import FunctionType

import lockhouse_expressions as expressions
from lockhouse_calls import identifier
from lockhouse_servers import AsyncToolFunction, ToolFunction

_TAKERS = frozenset("gather create_task ensure_future wait_for wait shield as_completed run run_until_complete run_coroutine_threadsafe".split())


def hint_for_values(location):
    """What to write if a function of asyncio was called with values instead of coroutines; None for other failed calls."""
    for _, node in expressions.failing(location, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        if name not in _TAKERS:
            continue
        calls = [part for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Call)]
        about = (_about(call.func, expressions.value_of(call.func, location.frame)) for call in calls)
        return next(filter(None, about), f"{name} takes coroutines, as from functions of mcp_tools.aio, and got a value")
    return None


def _about(node, function):
    if isinstance(function, ToolFunction) and not isinstance(function, AsyncToolFunction):
        server = identifier(function.tool[0])
        statement = f"from mcp_tools.aio.{server} import {function.__name__}" if isinstance(node, ast.Name) else f"from mcp_tools.aio import {server}"
        return f"{function.__name__} is not async here, and has answered already: write `{statement}`"
    if type(function) is FunctionType and not iscoroutinefunction(function):
        return f"{function.__name__} is not async: write `async def {function.__name__}`, and await functions of mcp_tools.aio in it"
    return None
