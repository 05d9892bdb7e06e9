# Calls that the policy denies, in every way of calling, and a call that the server refuses.
from mcp_tools import ToolError, call_tool, filesystem, git


def error_of(attempt):
    try:
        return ["done", attempt()]
    except ToolError as error:
        return [error.code, error.server, error.tool, error.message]


def import_it():
    from mcp_tools.filesystem import write_file


path = "@FILES@/sale-000.txt"
[
    error_of(lambda: filesystem.write_file(path=path, content="gone")),
    error_of(lambda: call_tool("filesystem", "write_file", {"path": path, "content": "gone"})),
    error_of(import_it),
    error_of(lambda: git.git_commit(repo_path="@REPOSITORY@", message="mine")),
    error_of(lambda: call_tool("git", "gitCommit", {"repo_path": "@REPOSITORY@", "message": "mine"})),
    error_of(lambda: filesystem.read_text_file(path="/etc/hostname")),
]
