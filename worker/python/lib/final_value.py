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
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    function = last.value.func
    return (getattr(function, "attr", None) or getattr(function, "id", None)) in ("print", "pprint")
