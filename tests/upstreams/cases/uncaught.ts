// A refusal that the program does not expect.
const branch = await git.git_branch({ repo_path: "@REPOSITORY@", branch_type: "local" });

await git.git_commit({ repo_path: "@REPOSITORY@", message: branch });
