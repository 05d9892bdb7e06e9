// An AI client over standard input and output: starts `lockhouse serve` and runs programs.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class AiClient {
  #process;
  #pending = new Map();
  #id = 0;
  errors = "";

  /** Starts `lockhouse serve` for an AI client of this name. */
  static async start(lockhouse, environment, name) {
    const client = new AiClient();
    client.#process = spawn(lockhouse, ["serve"], { env: environment, stdio: ["pipe", "pipe", "pipe"] });
    client.#process.stderr.on("data", (text) => (client.errors = (client.errors + text).slice(-20_000)));
    createInterface({ input: client.#process.stdout }).on("line", (line) => client.#receive(JSON.parse(line)));
    await client.#request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } });
    client.#send({ method: "notifications/initialized" });
    return client;
  }

  /** Runs a program to its end. Returns the answer as the model reads it, and whether it is an error. */
  async run(code, { language = "python", ...rest } = {}) {
    const { content, isError } = await this.#request("tools/call", { name: "run_code", arguments: { language, code, ...rest } });
    return { text: content.map((block) => block.text ?? "").join("\n"), isError: Boolean(isError) };
  }

  async end() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.stdin.end();
    await ended;
  }

  #send(message) {
    this.#process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #request(method, params) {
    const id = ++this.#id;
    this.#send({ id, method, params });
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  #receive(message) {
    const waiting = this.#pending.get(message.id);
    if (!waiting || message.method) return;
    this.#pending.delete(message.id);
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  }
}
