"""Extracts a function or class of the program as a module of its own, with everything that it uses."""

import ast
import builtins
import dis
import sys
from inspect import unwrap
from types import CodeType, FunctionType

import lockhouse_sources as sources

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
# Modules whose functions must not be called while a skill is loaded: a skill has no effect before it is called.
_OF_TOOLS = ("mcp_tools", "skills")
_ALTERNATIVE = "pass it as a parameter, or give the whole source: skills.save(name, description, code=\"\"\"…\"\"\")"


class NotSavable(ValueError):
    """Why a function cannot be extracted from its program."""


NotSavable.__name__ = NotSavable.__qualname__ = "ValueError"
NotSavable.__module__ = "builtins"


def source_of(thing):
    """Returns the source of a module that defines the function or class."""
    name = getattr(thing, "__name__", None)
    inner = unwrap(thing)
    is_function = isinstance(inner, FunctionType)
    lines = sources.lines_of(inner.__code__.co_filename if is_function else sources.current())
    program = _Program(sources.without_indentation("".join(lines)))
    node = program.definition(name)
    line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) if node else None
    is_another = is_function and inner.__code__.co_firstlineno != line
    if node is None or is_another or vars(sys.modules["__main__"]).get(name) is not thing:
        raise NotSavable(f"{name or thing!r} is not defined by a def or class at the top of this program; "
                         "move it there, or give its source: skills.save(name, description, code=\"\"\"…\"\"\")")
    return program.module_of(node)


class _Program:
    def __init__(self, source):
        self.lines = source.splitlines(keepends=True)
        self.body = ast.parse(source).body
        self.futures = [node for node in self.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        self.stars = [node for node in self.body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
        self.bound = {}
        for node in self.body:
            for name in _names_set_by(node):
                self.bound.setdefault(name, []).append(node)

    def definition(self, name):
        found = self.bound.get(name, ())
        return found[-1] if found and isinstance(found[-1], _DEFINITIONS) else None

    def module_of(self, node):
        self.imports, self.parts = {}, {}
        self.collect(node)
        head = [ast.unparse(future) for future in self.futures]
        head += [text for _, text in sorted((node.lineno, text) for text, node in self.imports.items())]
        parts = [self.text(part) for _, part in sorted(self.parts.items())]
        return "\n\n\n".join(filter(None, ["\n".join(head), *parts])) + "\n"

    def collect(self, node):
        """Collects a statement and all statements that it uses."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if self.parts.setdefault(node.lineno, node) is not node:
                continue  # Two statements on one line: the text of the line contains both.
            for name in self.global_names(node):
                waiting += [needed for needed in self.resolve(name, node) if self.parts.get(needed.lineno) is not needed]

    def global_names(self, node):
        """The global names that a statement reads, including those in nested functions."""
        codes = [compile(ast.Module([*self.futures, node], []), sources.CODE, "exec", dont_inherit=True)]
        names = set()
        for code in codes:
            codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
            read = [step for step in dis.get_instructions(code) if step.opname in (*_LOADS, "STORE_NAME")]
            own = {step.argval for step in read if step.opname == "STORE_NAME"}
            names.update(step.argval for step in read if step.opname in _LOADS and step.argval not in own)
        return sorted(name for name in names if name[:2] != "__")

    def resolve(self, name, user):
        """Returns the statements that define a name. Imports are collected at once."""
        nodes = self.bound.get(name, ())
        if not nodes:
            if hasattr(builtins, name):
                return []
            if not self.stars:
                raise NotSavable(f"line {user.lineno} uses {name}, which this program does not define; {_ALTERNATIVE}")
            self.imports.update((ast.unparse(star), star) for star in self.stars)
            return []
        if all(isinstance(node, _IMPORTS) for node in nodes):
            for node in nodes:
                self.imports.update((_format_import(node, alias), node) for alias in node.names if _imported_name(alias) == name)
            return []
        if len(nodes) > 1:
            lines = ", ".join(str(node.lineno) for node in nodes)
            raise NotSavable(f"line {user.lineno} uses {name}, which is set on several lines ({lines}); {_ALTERNATIVE}")
        node = nodes[0]
        if not isinstance(node, _DEFINITIONS):
            self.require_constant(name, node, user)
        return [node]

    def require_constant(self, name, node, user):
        value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        words = f"line {user.lineno} uses {name}, and what line {node.lineno} sets it to"
        if value is None:
            raise NotSavable(f"{words} is known only when the program runs; {_ALTERNATIVE}")
        for part in ast.walk(value):
            if isinstance(part, (ast.Await, ast.NamedExpr)):
                raise NotSavable(f"{words} is known only when the program runs; {_ALTERNATIVE}")
            if isinstance(part, ast.Call) and not self.is_pure(part.func):
                raise NotSavable(f"{words} is made by a call; {_ALTERNATIVE}")

    def is_pure(self, function):
        """Whether a call, as of `re.compile(…)`, calls neither functions of the program nor tools."""
        while isinstance(function, (ast.Attribute, ast.Call)):
            function = function.value if isinstance(function, ast.Attribute) else function.func
        if isinstance(function, ast.Constant):
            return True
        if not isinstance(function, ast.Name):
            return False
        nodes = self.bound.get(function.id, ())
        if not nodes:
            return hasattr(builtins, function.id)
        return all(isinstance(node, ast.ClassDef) or _is_of_a_library(node) for node in nodes)

    def text(self, node):
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        return "".join(self.lines[first - 1:node.end_lineno]).rstrip()


def _is_of_a_library(node):
    if isinstance(node, ast.Import):
        return not any(alias.name.partition(".")[0] in _OF_TOOLS for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _OF_TOOLS


def _names_set_by(node):
    """The names that a top-level statement assigns."""
    if isinstance(node, _DEFINITIONS):
        return [node.name]
    if isinstance(node, _IMPORTS):
        return [_imported_name(alias) for alias in node.names if alias.name != "*"]
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            names.add(part.id)
        elif isinstance(part, _DEFINITIONS):
            names.add(part.name)
        elif isinstance(part, _IMPORTS):
            names.update(_imported_name(alias) for alias in part.names)
    return names


def _imported_name(alias):
    return alias.asname or alias.name.partition(".")[0]


def _format_import(node, alias):
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import([alias]))
    return ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
