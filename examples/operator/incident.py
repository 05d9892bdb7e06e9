# When did it begin, what was changed just before, and by whom: a log, a repository and the team's clock.
import re
from collections import Counter

from mcp_tools import files, git, time

log = files.read_text_file(path="service.log")["content"].splitlines()
errors = [line.split(" ", 2) for line in log if " ERROR " in line]
began = errors[0][0]

# The newest commit comes first; the suspect is the last one before the first error.
commits = re.findall(r"^Commit: (\w+)\nAuthor: (.+?)(?: <.*)?\nDate: (\S+ ?\S*)\nMessage: (.+)", git.git_log("repository", max_count=50), re.M)
before = [commit for commit in commits if commit[2].replace(" ", "T")[:19] < began[:19]]
revision, author, _, message = before[0]
change = [line for line in git.git_show("repository", revision).splitlines() if re.match(r"[+-]\w", line)]

tokyo = time.convert_time(source_timezone="UTC", time=began[11:16], target_timezone="Asia/Tokyo")
{
    "began": began,
    "in_tokyo": tokyo["target"]["datetime"][11:16],
    "errors": len(errors),
    "kinds": dict(Counter(text for _, _, text in errors)),
    "suspect": {"author": author, "message": message.strip(), "change": change},
    "commits_since": len(commits) - len(before),
}
