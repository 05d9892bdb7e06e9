// Lockhouse as a user has it: a home directory with a configuration and a policy, an upstream server, an AI client, and
// `lockhouse page`.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { AiClient } from "./ai_client.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const LOCKHOUSE = process.env.LOCKHOUSE;

const ORDER = { type: "object", properties: { order: { type: "integer" }, amount: { type: "number" } }, required: ["order"] };
const TEXT = { type: "object", properties: { text: { type: "string" } } };

/** The tools of the server `shop` at its first start. */
export const TOOLS = [
  { name: "orders", description: "Lists the orders of a day.", inputSchema: TEXT, annotations: { readOnlyHint: true } },
  { name: "customers", description: "Finds customers.", inputSchema: TEXT, annotations: { readOnlyHint: true } },
  { name: "refund", description: "Refunds an order.", inputSchema: ORDER, annotations: { destructiveHint: true } },
  { name: "cancel_order", description: "Cancels an order.", inputSchema: ORDER, annotations: { destructiveHint: true } },
  { name: "delete_customer", description: "Deletes a customer.", inputSchema: TEXT, annotations: { destructiveHint: true } },
];

export const POLICY = `version = 1

[servers.shop]
# Reading is harmless.
allow = ["orders", "customers"]
ask = ["refund", "cancel_order"]
`;

const CONFIGURATION = (shop, approvals) => `[approvals]
through = "local"
${approvals}wait_seconds = 600

[clients]
runs = "10000/min"

[servers.shop]
command = "python3"
args = ["-B", ${JSON.stringify(join(HERE, "shop.py"))}, ${JSON.stringify(shop)}]
on_change = "ask"
`;

export class Product {
  #clients = [];
  #pages = [];

  /** `approvals` are further lines of the table `[approvals]`. */
  constructor(approvals = "") {
    this.home = mkdtempSync(join(tmpdir(), "lockhouse-page-"));
    this.shop = join(this.home, "shop");
    this.configuration = join(this.home, ".config/lockhouse");
    mkdirSync(this.shop);
    mkdirSync(this.configuration, { recursive: true });
    this.setTools(TOOLS);
    this.setAnswers({});
    this.write("config.toml", CONFIGURATION(this.shop, approvals));
    this.write("policy.toml", POLICY);
    this.environment = { HOME: this.home, PATH: process.env.PATH, NO_COLOR: "1" };
  }

  write(name, text) {
    writeFileSync(join(this.configuration, name), text);
  }

  policy() {
    return readFileSync(join(this.configuration, "policy.toml"), "utf8");
  }

  setTools(tools) {
    writeFileSync(join(this.shop, "tools.json"), JSON.stringify(tools));
  }

  setAnswers(answers) {
    writeFileSync(join(this.shop, "answers.json"), JSON.stringify(answers));
  }

  async client(name) {
    const client = await AiClient.start(LOCKHOUSE, this.environment, name);
    this.#clients.push(client);
    return client;
  }

  /** Starts `lockhouse page`. */
  async page(...options) {
    const page = await PageProcess.start(this.environment, options);
    this.#pages.push(page);
    return page;
  }

  /** Runs a command of Lockhouse to its end, and returns what it printed. */
  command(...words) {
    return new Promise((resolve) => {
      const child = spawn(LOCKHOUSE, words, { env: this.environment, stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      child.stdout.on("data", (text) => (output += text));
      child.stderr.on("data", (text) => (output += text));
      child.once("exit", (status) => resolve({ status, output }));
    });
  }

  async end() {
    await Promise.all(this.#pages.map((page) => page.end()));
    await Promise.all(this.#clients.map((client) => client.end()));
    if (process.env.KEEP_HOME) cpSync(this.home, process.env.KEEP_HOME, { recursive: true });
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** The process of `lockhouse page`. */
class PageProcess {
  #process;

  static async start(environment, options) {
    const page = new PageProcess();
    page.#process = spawn(LOCKHOUSE, ["page", "--no-open", ...options], { env: environment, stdio: ["pipe", "pipe", "pipe"] });
    let errors = "";
    page.#process.stderr.on("data", (text) => (errors = (errors + text).slice(-20_000)));
    page.link = await new Promise((resolve, reject) => {
      createInterface({ input: page.#process.stdout }).on("line", (line) => line.startsWith("http://") && resolve(line.trim()));
      page.#process.once("exit", () => reject(new Error(`lockhouse page ended: ${errors}`)));
    });
    const url = new URL(page.link);
    page.origin = url.origin;
    page.port = Number(url.port);
    page.token = url.hash.replace("#token=", "");
    return page;
  }

  get pid() {
    return this.#process.pid;
  }

  async end() {
    if (this.#process.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGINT");
    await ended;
  }
}
