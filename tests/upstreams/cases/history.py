# Reads the whole git log, and the changes of its newest commits, by author.
import asyncio
import re

from mcp_tools import aio
from mcp_tools.git import git_log

log = git_log(repo_path="@REPOSITORY@", max_count=1000)
commits = re.findall(r"^Commit: (\w+)\nAuthor: (.+)\nDate: (\S+)", log, re.M)

rows = {}
for _, author, day in commits:
    row = rows.setdefault(author, [0, 0, day, day])
    row[0] += 1
    row[2] = day

shown = await asyncio.gather(
    *(aio.git.git_show(repo_path="@REPOSITORY@", revision=name) for name, _, _ in commits[:@SHOWN@])
)
for (_, author, _), text in zip(commits, shown):
    rows[author][1] += sum(line.startswith("+") and not line.startswith("+++") for line in text.splitlines())

march = git_log("@REPOSITORY@", max_count=1000, start_timestamp="2026-03-01T00:00:00Z", end_timestamp="2026-03-31T23:59:59Z")
{"authors": [[author, *rows[author]] for author in sorted(rows)], "march": march.count("Commit: ")}
