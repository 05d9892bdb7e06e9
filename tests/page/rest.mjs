// 100 pages at rest: the CPU time of the process over 30 s.

import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

import { expect, row, until } from "./rows.mjs";

const STREAMS = 100;
const SECONDS = 30;
/** The unit of times in /proc/PID/stat. */
const TICKS_PER_SECOND = 100;
/** A generous limit for slow machines; the figure is printed. */
const CPU_MAX_PERCENT = 5;

function cpuTicks(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

export async function rest({ product }) {
  const client = await product.client("claude-code");
  await client.run("6 * 7");
  const process = await product.page();
  await row(`${STREAMS} pages at rest for ${SECONDS} s: CPU time of the process`, async () => {
    const headers = { "Content-Type": "application/json", "X-Lockhouse-Page": "login" };
    const login = await fetch(`${process.origin}/api/login`, { method: "POST", headers, body: JSON.stringify({ token: process.token }) });
    const session = { "X-Lockhouse-Page": (await login.json()).key, Cookie: login.headers.getSetCookie()[0].split(";")[0] };
    const agent = new Agent({ maxSockets: Infinity });
    const received = new Set();
    const streams = Array.from({ length: STREAMS }, (_, index) => {
      const stream = request(`${process.origin}/api/events`, { headers: session, agent }, (answer) => {
        answer.on("data", (data) => data.includes("event: ") && received.add(index));
      });
      stream.on("error", () => {});
      return stream.end();
    });
    await until("every stream has sections", () => received.size === STREAMS);
    const before = cpuTicks(process.pid);
    await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
    const percent = ((cpuTicks(process.pid) - before) / TICKS_PER_SECOND / SECONDS) * 100;
    for (const stream of streams) stream.destroy();
    expect(percent < CPU_MAX_PERCENT, `${percent.toFixed(2)} % of a CPU`);
    return `${percent.toFixed(2)} % of a CPU`;
  });
}
