// Serves @utcp/code-mode over MCP (stdio): the tool `run_code` takes one program. Usage: node utcp_server.mjs PACKAGES FILE
//
// PACKAGES is the directory with `node_modules`. FILE has the entry `mcpServers`; each server's tools are `server.server_tool`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [packages, file] = process.argv.slice(2);
const load = createRequire(`${packages}/`);
// The library logs to the standard output, which is for the answers here.
console.log = () => {};
const { CodeModeUtcpClient } = load("@utcp/code-mode");
load("@utcp/mcp");

const client = await CodeModeUtcpClient.create(packages);
for (const [name, entry] of Object.entries(JSON.parse(readFileSync(file)).mcpServers)) {
  await client.registerManual({ name, call_template_type: "mcp", config: { mcpServers: { [name]: { transport: "stdio", ...entry } } } });
}

async function resultOf({ method, params }) {
  if (method === "initialize") {
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "utcp", version: "1" } };
  }
  const { result, logs } = await client.callToolChain(params.arguments.code);
  // The library reports a failure as a log line and the result null.
  const failed = result === null && logs.some((line) => line.startsWith("[ERROR]"));
  return { content: [{ type: "text", text: JSON.stringify(failed ? logs : result) }], isError: failed };
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const message = JSON.parse(line);
  if ("id" in message) {
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: await resultOf(message) }) + "\n");
  }
});
