// One TypeScript SDK client. PACKAGE is the name under which the SDK is installed; the entry is JSON in ENTRY: {command, args} or
// {url, token}. Prints a JSON object: what each check saw.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [name, folder] = [process.env.PACKAGE, process.env.SDKS];
const entry = JSON.parse(process.env.ENTRY);
const require = createRequire(`${folder}/`);
const load = (path) => import(pathToFileURL(require.resolve(path)).href);
let Client, Stdio, Http;
if (name === "@modelcontextprotocol/client") {
  const all = await load(name);
  ({ Client, StreamableHTTPClientTransport: Http } = all);
  Stdio = all.StdioClientTransport ?? (await load(`${name}/stdio`)).StdioClientTransport;
} else {
  ({ Client } = await load(`${name}/client/index.js`));
  ({ StdioClientTransport: Stdio } = await load(`${name}/client/stdio.js`));
  ({ StreamableHTTPClientTransport: Http } = await load(`${name}/client/streamableHttp.js`));
}
const transport = entry.url
  ? new Http(new URL(entry.url), { requestInit: { headers: { Authorization: `Bearer ${entry.token}` } } })
  : new Stdio({ command: entry.command, args: entry.args, env: process.env });
const client = new Client({ name: "sdk-check", version: "1" }, { capabilities: {} });
const seen = {};
const schema = name === "@modelcontextprotocol/client" ? [] : [undefined];
const call = (code, options) => client.callTool({ name: "run_code", arguments: { language: "python", code } }, ...schema, options);
await client.connect(transport);
seen.initialize = client.getServerVersion()?.name;
seen.list = (await client.listTools()).tools.map((tool) => tool.name);
seen.call = (await call("40 + 2")).content[0].text;
let progress = 0;
await call("from mcp_tools.shop import wait\nfor _ in range(3): wait(seconds=0.7)", { onprogress: () => progress++ });
seen.progress = progress > 0;
const abort = new AbortController();
const cancelled = call("from mcp_tools.shop import wait\nwait(seconds=30)", { signal: abort.signal }).then(() => "answered", () => "cancelled");
setTimeout(() => abort.abort("enough"), 800);
seen.cancellation = await cancelled;
seen.after = (await call("'still here'")).content[0].text;
await client.close();
console.log(JSON.stringify(seen));
