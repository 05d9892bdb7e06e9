"""Converts the Python programs to the form that FastMCP's CodeMode accepts, mechanically.

CodeMode has one function, `await call_tool("SERVER_TOOL", {...})`, and a program returns its result. Conversion
- defines each imported tool before the program as an asynchronous function that only collects its arguments and returns what
  `call_tool` returns, and removes the imports of `mcp_tools`; a tool of an imported server, `slack.get_channels`, becomes
  `slack_get_channels`;
- inserts `await` before calls of these functions, and of functions of the program that contain them and become `async def`;
- turns a last expression into `return`, and printed lines into the returned text, since CodeMode drops them.
Nothing else of the program changes, and results are neither parsed nor unwrapped. A program whose calls are in a thread or a
lambda has no such form.
"""

import ast

PRELUDE = """\
async def {name}(*positional, **named):
    return await call_tool("{tool}", {{**dict(zip({parameters}, positional)), **named}})
"""
PRINT = """\
_printed = []
def print(*values, sep=" "):
    _printed.append(sep.join(str(value) for value in values))
"""


class HasNoForm(Exception):
    """The program cannot be converted."""


def convert(source: str, parameters: dict[tuple[str, str], list[str]], printed: bool) -> str:
    """`parameters` has the names of the parameters of each tool, required ones first."""
    tree = ast.parse(source)
    tools, modules = _used(tree)
    coroutines = {name for name, (_, _, waits) in tools.items() if not waits}
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    for function in functions:
        calls = {_name(node.func, modules) for node in ast.walk(function) if isinstance(node, ast.Call)}
        if calls & coroutines and isinstance(function, ast.Lambda):
            raise HasNoForm("a lambda calls a tool")
        if calls & coroutines:
            coroutines.add(function.name)
    tree = _Awaits(modules, coroutines).visit(tree)
    tree.body = [node for node in tree.body if not _imports_tools(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "ThreadPoolExecutor":
            raise HasNoForm("threads call a tool")
    if printed:
        tree.body.append(ast.parse('return "\\n".join(_printed)').body[0])
    elif isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Return(tree.body[-1].value)
    definitions = [
        PRELUDE.format(name=name, tool=f"{server}_{tool}", parameters=parameters[server, tool])
        for name, (server, tool, _) in tools.items()
    ]
    return "".join([*definitions, PRINT if printed else "", ast.unparse(ast.fix_missing_locations(tree)), "\n"])


def used_tools(source: str) -> list[str]:
    """Returns CodeMode's names of the tools that a program uses."""
    return [f"{server}_{tool}" for server, tool, _ in _used(ast.parse(source))[0].values()]


def _used(tree: ast.AST) -> tuple[dict[str, tuple[str, str, bool]], dict[str, tuple[str, bool]]]:
    """Returns the tools by the names of their functions after conversion, and the imported servers by their names."""
    imports = _Imports()
    imports.visit(tree)
    return {**imports.tools, **_attributes(tree, imports.modules)}, imports.modules


def _imports_tools(node: ast.stmt) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.split(".")[0] == "mcp_tools" for name in names)


class _Imports(ast.NodeVisitor):
    """Collects imported tools and servers. With `mcp_tools.aio`, the program awaits the calls itself."""

    def __init__(self):
        self.tools: dict[str, tuple[str, str, bool]] = {}
        self.modules: dict[str, tuple[str, bool]] = {}

    def visit_Import(self, node: ast.Import):
        for alias in node.names:
            if alias.name.startswith("mcp_tools."):
                self.modules[alias.asname] = (alias.name.split(".")[-1], ".aio." in alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom):
        path = (node.module or "").split(".")
        if path[0] != "mcp_tools":
            return
        waits = "aio" in path
        for alias in node.names:
            if path[-1] in ("mcp_tools", "aio"):
                self.modules[alias.asname or alias.name] = (alias.name, waits)
            else:
                self.tools[alias.asname or alias.name] = (path[-1], alias.name, waits)


def _attributes(tree: ast.AST, modules: dict) -> dict:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            server, waits = modules[node.value.id]
            found[f"{server}_{node.attr}"] = (server, node.attr, waits)
    return found


def _name(node: ast.expr, modules: dict) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
        return f"{modules[node.value.id][0]}_{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


class _Awaits(ast.NodeTransformer):
    def __init__(self, modules: dict, coroutines: set[str]):
        self.modules, self.coroutines = modules, coroutines

    def visit_Attribute(self, node: ast.Attribute):
        name = _name(node, self.modules)
        return ast.Name(name, ast.Load()) if name else self.generic_visit(node)

    def visit_Call(self, node: ast.Call):
        waits = _name(node.func, self.modules) in self.coroutines
        self.generic_visit(node)
        return ast.Await(node) if waits else node

    def visit_FunctionDef(self, node: ast.FunctionDef):
        self.generic_visit(node)
        return ast.AsyncFunctionDef(**vars(node)) if node.name in self.coroutines else node
