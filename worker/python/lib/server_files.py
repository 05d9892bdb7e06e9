"""The MCP servers as a tree of folders and files: `servers/github/create_issue.py` has the signature and the description of a tool.

Nothing is asked of the supervisor before a program looks at the folder of a server or reads the file of a tool.
"""

import errno

import _lockhouse
import lockhouse_files as files
import lockhouse_files_store as store
import lockhouse_signatures as signatures
from lockhouse_calls import ToolError, ask, find_server, find_tool, identifier, known_servers, tools_of
from lockhouse_files_nodes import ListedFile, Listing

_PACKAGE = "__init__.py"


def _tree():
    return Listing(
        lambda: [(identifier(server), _folder(server)) for server in known_servers()],
        lambda name: None if find_server(name) is None else _folder(find_server(name)))


def _folder(server):
    def listed():
        return [(_PACKAGE, _package(server)), *((f"{tool}.py", _file(server, row)) for tool, row in _tools(server).items())]

    def found(name):
        if name == _PACKAGE:
            return _package(server)
        stem, dot, suffix = name.rpartition(".")
        row = _answer(find_tool, server, stem) if dot and suffix == "py" else None
        return _file(server, row) if row else None

    return Listing(listed, found)


def _tools(server):
    return _answer(tools_of, server)


def _answer(request, *arguments):
    """Asks for something. A server that is not available is an error of the file system, as other functions of the language expect it."""
    try:
        return request(*arguments)
    except ToolError as error:
        words = str(error)
        store.State.on_refusal(words)  # os.walk and glob hide it.
        raise OSError(errno.EIO, words) from None


def _package(server):
    return ListedFile(lambda: _text_of_package(server))


def _file(server, row):
    return ListedFile(lambda: _text_of_tool(server, row))


def _text_of_package(server):
    rows = _tools(server).items()
    lines = [f"from .{name} import {name}" + (f"  # {_one_line(row['summary'])}" if row.get("summary") else "") for name, row in rows]
    return "\n".join([_quoted(f"The permitted tools of the MCP server {server}."), "", *lines, ""])


def _text_of_tool(server, row):
    described = _answer(ask, _lockhouse.describe, server, row["name"])
    name = described["identifier"]
    head, mark, comment = (described.get("python") or f"{name}(**arguments)").partition("  # ")
    signature, *rest = signatures.doc(described).split("\n\n", 1)
    words = _quoted("".join(rest) or signature).replace("\n", "\n    ")
    lines = [
        f"# Import it with: from {store.SERVERS}.{identifier(server)} import {name}", "",
        f"def {head}:{mark}{comment}", *(f"    {line}".rstrip() for line in words.split("\n    ")), "    ...", ""]
    return "\n".join(lines)


def _one_line(text):
    return " ".join(text.split())


def _quoted(text):
    """A text as a documentation string."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}\n"""' if "\n" in escaped or escaped.endswith('"') else f'"""{escaped}"""'


def install():
    """Called in the zygote."""
    files.set_servers(_tree)
