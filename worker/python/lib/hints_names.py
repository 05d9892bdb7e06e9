"""Suggestions for unknown names: variables, tools, servers, attributes, and names in modules."""

import ast
import builtins
import difflib
import re
import sys
from types import CoroutineType, ModuleType

import lockhouse_expressions as expressions
from lockhouse_calls import find_tool, full_name_of, identifier, known_servers, search_names
from lockhouse_servers import ServerModule, left_out_reason, split_flat_name, unknown_server_message
from lockhouse_expressions import UNKNOWN, clip, keys_of, shape
from lockhouse_decoded import plain_type
from lockhouse_excerpts import current_line
from lockhouse_hints_packages import hint_for_loaded_module, hint_for_usual_name
from lockhouse_hints_syntax import hint_for_entities
from lockhouse_values import Blob, Text

_PYTHON_NAMES = {"true": "True", "false": "False", "null": "None", "undefined": "None", "nil": "None", "console": "print(...)",
            "JSON": "the module json", "Math": "the module math", "Promise": "asyncio.gather", "require": "import"}


def hint_for_name(error, message, location):
    name = getattr(error, "name", None) or (re.findall(r"'(\w+)'", message) or [""])[0]
    if isinstance(error, UnboundLocalError):
        return _hint_for_local(name, location)
    for server in known_servers():
        if name in (server, identifier(server)):
            return f"write `import mcp_tools.{identifier(server)} as {identifier(server)}` first"
    if name in sys.modules["mcp_tools"].__all__:
        return f"write `from mcp_tools import {name}` first"
    member = expressions.member_of(name, location)
    words = hint_for_loaded_module(name, member) or _hint_for_key_or_entity(name, current_line(location.line))
    if words:
        return words
    if name in _PYTHON_NAMES:
        return f"in Python it is {_PYTHON_NAMES[name]}"
    names = {known for known in vars(sys.modules["__main__"]) if known[:2] != "__"}
    if location.frame is not None:
        names.update(known for known in location.frame.f_locals if known[:1].isidentifier())
    near = difflib.get_close_matches(name, sorted(names), 1, 0.75)
    if near:
        return f"did you mean {near[0]}?"
    words = (left_out_reason(name) or _hint_for_tool(name) or _hint_for_flat_name(name) or _hint_for_misspelt_server(name, member)
             or _hint_for_server(name, member, current_line(location.line)) or hint_for_usual_name(name))
    if words:
        return words
    names.update(known for known in vars(builtins) if known[:1] != "_")
    near = difflib.get_close_matches(name, sorted(names), 1, 0.75)
    return f"did you mean {near[0]}?" if near else None


def _hint_for_key_or_entity(name, line):
    """For a key without quotes, and for the name in an HTML entity."""
    if f"&{name};" in line:
        return hint_for_entities(line)
    if re.search(rf"[{{,]\s*{re.escape(name)}\s*:", line):
        return f'write the key in quotes, {{"{name}": ...}}, or a named argument, {name}=...'
    return None


def _hint_for_flat_name(name):
    """For a name such as `github_list_issues`: how to import the tool."""
    server, tool = split_flat_name(name, ("_",)) or (None, None)
    row = server and find_tool(server, tool)
    return f"write `from mcp_tools.{identifier(server)} import {row['identifier']}` first" if row else None


def _hint_for_misspelt_server(name, member):
    """For a name with a member, as in `githbu.list_issues()`, that is similar to the name of a server."""
    near = difflib.get_close_matches(name, map(identifier, known_servers()), 1, 0.7) if member else ()
    return f"did you mean the MCP server {near[0]}?" if near else None


def _hint_for_server(name, member, line):
    """For a name that was used like a server, or like the session of an MCP client."""
    if member in ("call_tool", "callTool"):
        tool = re.search(r"[tT]ool\(\s*[\"']([\w.-]+)", line)
        called = tool and full_name_of(tool[1]) or "SERVER.TOOL"
        return f"there is no session to open, and {member} is a function: write `call_tool(\"{called}\", {{...}})`"
    if "__" in name.strip("_"):
        return unknown_server_message(name.removeprefix("mcp__").partition("__")[0])
    return _hint_for_tool(member) if member else None


def _hint_for_local(name, location):
    if not name or location.frame is None:
        return None
    if name in location.frame.f_globals:
        return (f"{name} is assigned in this function, so it is a variable of its own: write `global {name}` as the first line of "
                "the function, or use another name")
    return f"{name} has a value in some branches only: give it one at the beginning"


def _hint_for_tool(name):
    """How to import a tool with this name. Sends one search request if there are servers."""
    if not known_servers():
        return None
    loose = name.replace("_", "").lower()
    for row in search_names(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()):
        tool = identifier(row["tool"])
        if tool.replace("_", "").lower() == loose:
            return f"write `from mcp_tools.{identifier(row['server'])} import {tool}` first"
    return None


# Names from JavaScript and other languages with their Python equivalents, by type.
_PYTHON_METHODS = {
    list: {"push": ".append(value)", "length": "len(...)", "size": "len(...)", "map": "[f(x) for x in ...]", "forEach": "a for loop",
           "filter": "[x for x in ... if ...]", "includes": "value in ...", "join": "', '.join(...)", "find": "next((x for x in ... if ...), None)",
           "slice": "...[start:end]", "concat": "a + b", "add": ".append(value)", "shift": ".pop(0)", "some": "any(...)", "every": "all(...)",
           "flat": "[x for part in ... for x in part]", "indexOf": ".index(value)"},
    str: {"length": "len(...)", "toUpperCase": ".upper()", "toLowerCase": ".lower()", "trim": ".strip()", "includes": "part in ...",
          "startsWith": ".startswith(...)", "endsWith": ".endswith(...)", "substring": "...[start:end]", "slice": "...[start:end]",
          "indexOf": ".find(...)", "replaceAll": ".replace(...)", "append": "a + b", "decode": "the text as it is", "contains": "part in ..."},
    dict: {"length": "len(...)", "has": "key in ...", "has_key": "key in ...", "iteritems": ".items()", "entries": ".items()",
           "forEach": "a for loop over .items()", "add": "...[key] = value", "append": "...[key] = value"},
}


def hint_for_attribute(error, message, location):
    value, name = getattr(error, "obj", UNKNOWN), getattr(error, "name", None)
    if value is UNKNOWN or type(name) is not str or isinstance(value, ServerModule):
        return None
    found = next((expression for expression, node in expressions.failing(location, ast.Attribute) if node.attr == name), None)
    source = found.source if found else "it"
    equivalent = next((words[name] for kind, words in _PYTHON_METHODS.items() if isinstance(value, kind) and name in words), None)
    if equivalent and not (plain_type(value) is dict and name in value):
        return f"in Python it is {equivalent}"
    if isinstance(value, Text):
        near = difflib.get_close_matches(name, dir(str), 1, 0.75)
        return f"did you mean .{near[0]}?" if near else "the tool answered text; if it is JSON, .json() gives its value"
    if value is None:
        return f"{source} is None here: look before you use it, as with `if ... is not None:`"
    if type(value) is Blob:
        return f"{source} is {shape(value)}"
    if type(value) is CoroutineType:
        return f"await is missing: write `(await {source}).{name}`"
    if plain_type(value) is dict:
        if name in value:
            return f"a dict has keys: write {source}[{clip(name)}]"
        near = difflib.get_close_matches(name, keys_of(value), 1)
        suggestion = f"did you mean {source}[{clip(near[0])}]? " if near else ""
        return f"{suggestion}{source} is {shape(value)}"
    inner = next((key for key, one in vars(value).items() if isinstance(one, type) and hasattr(one, name)), None) if isinstance(value, ModuleType) else None
    if inner:
        return f"{source} is a module: did you mean {source}.{inner}.{name}?"
    near = difflib.get_close_matches(name, _attributes(value), 1)
    if near:
        return f"did you mean .{near[0]}?"
    if plain_type(value) in (list, tuple):
        return f"{source} is {shape(value)}; take one of them, or loop over them"
    return None


def _attributes(value):
    """The attribute names of a value, determined without running code of its class."""
    names = set(vars(value)) if isinstance(value, ModuleType) else set()
    for kind in type.__dict__["__mro__"].__get__(type(value)):
        names.update(type.__dict__["__dict__"].__get__(kind))
    own = object.__getattribute__(value, "__dict__") if hasattr(type(value), "__dictoffset__") and type(value).__dictoffset__ else {}
    names.update(own if type(own) is dict else ())
    return sorted(name for name in names if type(name) is str and name[:1] != "_")


def hint_for_import(error, message, location):
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", message)
    module = sys.modules.get(found[2]) if found else None
    if found and found[2] == "mcp_tools":
        return _hint_for_tool(found[1])
    if module is None or found[2].startswith("mcp_tools"):
        return None
    near = difflib.get_close_matches(found[1], _attributes(module), 3)
    return f"did you mean {' or '.join(near)}?" if near else None
