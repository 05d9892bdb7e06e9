// What the policy does not allow, by every way of asking for it, and what the server itself refuses.
async function errorOf(attempt: () => unknown) {
  try {
    return ["done", await attempt()];
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return [error.code, error.server, error.tool, error.message];
  }
}

const path = "@FILES@/sale-000.txt";
return [
  await errorOf(() => filesystem.write_file({ path, content: "gone" })),
  await errorOf(() => call_tool("filesystem", "write_file", { path, content: "gone" })),
  await errorOf(() => callTool("filesystem", "write_file", { path, content: "gone" })),
  await errorOf(() => git.git_commit({ repo_path: "@REPOSITORY@", message: "mine" })),
  await errorOf(() => git.gitCommit({ repo_path: "@REPOSITORY@", message: "mine" })),
  await errorOf(() => filesystem.read_text_file({ path: "/etc/hostname" })),
];
