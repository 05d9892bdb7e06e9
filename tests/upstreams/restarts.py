"""The ten public servers of check_restarts.py, with a program for each that writes and returns what all starts wrote."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import api
from installed import Npm, PyPI

from servers import MCP, OLDER


def up_to(n: int) -> list[int]:
    return list(range(1, n + 1))


@dataclass
class Server:
    """A server, a program in Python, and its whole expected answer in start n. Placeholders are `@N@` for n, `@WORK@` for
    the folder with the user's files, and `@API@` for the address of api.py."""

    name: str
    package: Npm | PyPI
    program: str
    expected: Callable[[int], Any]
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def statements(call: str) -> str:
    """Returns a program that writes a row and returns all rows. `call` is a call with the placeholder SQL."""
    queries = [
        "create table if not exists starts (n integer)",
        "insert into starts values (@N@)",
        "select n from starts order by n",
    ]
    return "\n".join(call.replace("SQL", json.dumps(query)) for query in queries)


SERVERS = [
    Server(
        "filesystem",
        Npm(f"{MCP}filesystem"),
        """filesystem.write_file(path="@WORK@/files/note-@N@.txt", content="gate @N@")
[filesystem.read_text_file(path=f"@WORK@/files/note-{n}.txt")["content"] for n in range(1, @N@ + 1)]""",
        lambda n: [f"gate {k}" for k in up_to(n)],
        ["@WORK@/files"],
    ),
    Server(
        "memory",
        Npm(f"{MCP}memory"),
        """memory.create_entities(entities=[{"name": "gate @N@", "entityType": "gate", "observations": ["open"]}])
memory.read_graph()""",
        lambda n: {
            "entities": [{"name": f"gate {k}", "entityType": "gate", "observations": ["open"]} for k in up_to(n)],
            "relations": [],
        },
        environment={"MEMORY_FILE_PATH": "@WORK@/memory/graph.jsonl"},
    ),
    # Keeps thoughts in memory: a history of one thought shows that the server was started anew.
    Server(
        "thinking",
        Npm(f"{MCP}sequential-thinking"),
        "thinking.sequentialthinking('open', False, 1, 1)",
        lambda n: {
            "thoughtNumber": 1,
            "totalThoughts": 1,
            "nextThoughtNeeded": False,
            "branches": [],
            "thoughtHistoryLength": 1,
        },
    ),
    Server(
        "git",
        PyPI("mcp-server-git"),
        """import re
git.git_add(repo_path="@WORK@/repository", files=["start-@N@.txt"])
git.git_commit(repo_path="@WORK@/repository", message="Start @N@")
re.findall(r"Start \\d+", git.git_log(repo_path="@WORK@/repository", max_count=10))""",
        lambda n: [f"Start {k}" for k in reversed(up_to(n))],
        ["--repository", "@WORK@/repository"],
    ),
    Server(
        "sqlite",
        PyPI("mcp-server-sqlite", OLDER),
        """sqlite.create_table(query="create table if not exists starts (n integer)")
sqlite.write_query(query="insert into starts values (@N@)")
sqlite.read_query(query="select n from starts order by n")""",
        lambda n: str([{"n": k} for k in up_to(n)]),
        ["--db-path", "@WORK@/sqlite/starts.sqlite"],
    ),
    Server(
        "duckdb",
        PyPI("mcp-server-motherduck"),
        statements("duckdb.execute_query(sql=SQL)"),
        lambda n: {
            "success": True,
            "columns": ["n"],
            "columnTypes": ["INTEGER"],
            "rows": [[k] for k in up_to(n)],
            "rowCount": n,
        },
        ["--db-path", "@WORK@/duckdb/starts.duckdb", "--read-write"],
    ),
    Server(
        "alchemy",
        PyPI("mcp-alchemy"),
        statements("alchemy.execute_query(query=SQL)"),
        lambda n: "".join(f"{k}. row\nn: {k}\n\n" for k in up_to(n)) + f"Result: {n} rows",
        environment={"DB_URL": "sqlite:///@WORK@/alchemy/starts.sqlite"},
    ),
    Server(
        "excel",
        PyPI("excel-mcp-server"),
        """if @N@ == 1:
    excel.create_workbook(path="@WORK@/excel/starts.xlsx")
sheet = excel.describe_workbook(path="@WORK@/excel/starts.xlsx")["sheets"][0]["name"]
excel.write_range(path="@WORK@/excel/starts.xlsx", sheet=sheet, at="A@N@", rows=[[@N@]])
excel.read_range(path="@WORK@/excel/starts.xlsx", sheet=sheet)["values"]""",
        lambda n: [[k] for k in up_to(n)],
        ["stdio"],
        {"EXCEL_FILES_PATH": "@WORK@/excel"},
    ),
    Server(
        "chroma",
        PyPI("chroma-mcp", OLDER),
        """chroma.chroma_create_collection(collection_name="gates-@N@")
found = chroma.chroma_list_collections()
sorted([found] if isinstance(found, str) else found)""",
        lambda n: [f"gates-{k}" for k in up_to(n)],
        ["--client-type", "persistent", "--data-dir", "@WORK@/chroma/data"],
        {"ANONYMIZED_TELEMETRY": "False", "PYTHONUNBUFFERED": "1"},
    ),
    Server(
        "fetch",
        PyPI("mcp-server-fetch"),
        'fetch.fetch(url="@API@/page", raw=True)',
        lambda n: "Content type text/html cannot be simplified to markdown, but here is the raw content:\n"
        f"Contents of @API@/page:\n{api.PAGE}",
        ["--ignore-robots-txt", "--allow-private-ips"],
    ),
]

# DuckDB accesses every file that its process may access: the copy inside its grant succeeds, so the kernel refuses the others.
CONTROL = """from mcp_tools import ToolError
duckdb.execute_query(sql="copy (select 1) to '@WORK@/duckdb/inside-@N@.csv'")
refused = []
for sql in ["copy (select 1) to '@WORK@/outside.csv'", "select * from read_text('@WORK@/key')"]:
    try:
        refused.append(duckdb.execute_query(sql=sql))
    except ToolError as error:
        refused.append("Permission denied" in error.message)
refused"""
