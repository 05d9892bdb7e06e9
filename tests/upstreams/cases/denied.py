# What the policy does not allow, by every way of asking for it, and what the server itself refuses.
from mcp_tools import ToolError, call_tool, filesystem, git


def told(attempt):
    try:
        return ["done", attempt()]
    except ToolError as error:
        return [error.code, error.server, error.tool, error.message]


def import_it():
    from mcp_tools.filesystem import write_file


path = "@FILES@/sale-000.txt"
[
    told(lambda: filesystem.write_file(path=path, content="gone")),
    told(lambda: call_tool("filesystem", "write_file", {"path": path, "content": "gone"})),
    told(import_it),
    told(lambda: git.git_commit(repo_path="@REPOSITORY@", message="mine")),
    told(lambda: call_tool("git", "gitCommit", {"repo_path": "@REPOSITORY@", "message": "mine"})),
    told(lambda: filesystem.read_text_file(path="/etc/hostname")),
]
