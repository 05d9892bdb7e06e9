"""The value of a program: calls a function that the program ends with, and advises if there is no value."""

import ast


def call_last_function(tree, body):
    """Makes the last statement call the function that it names, or `main` if the program defines it and never uses it.

    Only functions of the program that need no arguments are called.
    """
    functions = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _needs_nothing(node)}
    last = body[-1] if body else None
    if isinstance(last, ast.Expr):
        function = last.value
        is_function = function.id in functions if isinstance(function, ast.Name) else isinstance(function, ast.Lambda) and _needs_nothing(function)
        if is_function:
            last.value = ast.copy_location(ast.Call(function, [], []), function)
    elif "main" in functions and not any(isinstance(node, ast.Name) and node.id == "main" for node in ast.walk(tree)):
        name = ast.copy_location(ast.Name("main", ast.Load()), last)
        body.append(ast.copy_location(ast.Expr(ast.copy_location(ast.Call(name, [], []), last)), last))


def _needs_nothing(function):
    """Whether a function can be called without arguments, and is no generator."""
    arguments = function.args
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    if required or None in arguments.kw_defaults or getattr(function, "decorator_list", ()):
        return False
    return not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(function))


def advice(body):
    """How to get a value, if the program ends with an assignment; None otherwise."""
    last = body[-1] if body else None
    targets = last.targets if isinstance(last, ast.Assign) else [last.target] if isinstance(last, (ast.AugAssign, ast.AnnAssign)) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return f"end with an expression; `{names[0][:60]}` was assigned on line {last.lineno}" if names else None


def only_prints(body):
    """Whether the last expression is itself a call of `print` or `pprint`, whose None is no value."""
    call = _last_call(body)
    return call is not None and _last_name(call.func) in ("print", "pprint")


def returns_nothing(tree, body):
    """Whether the last expression is a call of a function of the program that has no `return` with a value, such as `main()`."""
    call = _last_call(body)
    if call is not None and _last_name(call.func) in ("run", "run_until_complete") and call.args:  # asyncio.run(main())
        call = call.args[0]
    name = getattr(call.func, "id", None) if isinstance(call, ast.Call) else None
    functions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name]
    return bool(functions) and not any(isinstance(part, ast.Return) and part.value is not None for node in functions for part in ast.walk(node))


def _last_call(body):
    """The call that is the last expression, with or without `await`; None for any other end."""
    last = body[-1] if body else None
    value = last.value if isinstance(last, ast.Expr) else None
    value = value.value if isinstance(value, ast.Await) else value
    return value if isinstance(value, ast.Call) else None


def _last_name(function):
    return getattr(function, "attr", None) or getattr(function, "id", None)
