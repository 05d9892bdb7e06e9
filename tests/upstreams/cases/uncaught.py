# A denied call whose error the program does not catch.
from mcp_tools import git

branch = git.git_branch(repo_path="@REPOSITORY@", branch_type="local")
git.git_commit(repo_path="@REPOSITORY@", message=branch)
