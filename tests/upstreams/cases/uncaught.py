# A refusal that the program does not expect.
from mcp_tools import git

branch = git.git_branch(repo_path="@REPOSITORY@", branch_type="local")
git.git_commit(repo_path="@REPOSITORY@", message=branch)
