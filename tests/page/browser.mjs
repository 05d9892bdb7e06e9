// Chromium with the page of Lockhouse, and what every part of the test asks of it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../build/page/", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const ARGUMENTS = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  // The name of an attacker's page resolves to this machine, as after DNS rebinding.
  "--host-resolver-rules=MAP evil.test 127.0.0.1",
];

export const SIZES = { phone: { width: 360, height: 740 }, laptop: { width: 1280, height: 800 }, "4K": { width: 3840, height: 2160 } };
export const VIEWS = ["overview", "runs", "approvals", "denials", "servers", "results", "audit", "savings", "host"];

export async function launch() {
  const sandbox = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...sandbox, ...ARGUMENTS] });
}

/** What must never happen in the page: script from data, a violation of the content security policy, an error. */
export async function watchForScript(page) {
  const findings = [];
  page.on("dialog", (dialog) => (findings.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("pageerror", (error) => findings.push(`error: ${error.message}`));
  page.on("console", (message) => /Content Security Policy|TrustedHTML|Trusted Type/i.test(message.text()) && findings.push(`console: ${message.text()}`));
  await page.addInitScript(() => {
    window.addEventListener("securitypolicyviolation", (event) => console.error(`Content Security Policy: ${event.violatedDirective}`));
  });
  return {
    findings,
    /** Throws if script from data ran, or tried to. */
    async verify() {
      const marks = await page.evaluate(() => window.payloadRan ?? null);
      if (marks !== null) findings.push(`a payload ran: ${marks}`);
      if (findings.length) throw new Error(findings.join("\n"));
    },
  };
}

/** Opens the link in a new page of the context, and waits for the first view. */
export async function open(context, link) {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const script = await watchForScript(page);
  await page.goto(link);
  await page.waitForSelector("#link[data-state=live]");
  await page.waitForSelector(".view");
  return { page, script };
}

/** Shows a view by its address. */
export async function show(page, view) {
  await page.evaluate((hash) => (location.hash = hash), `#/${view}`);
  await page.locator("main .view").filter({ has: page.locator("h1") }).waitFor();
  await page.waitForFunction((name) => document.querySelector("#views [aria-current=page]")?.hash === `#/${name}`, view.split("/")[0]);
}

/** Returns the serious and critical findings of axe-core in the current view. */
export async function accessibilityFindings(page) {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => (await window.axe.run()).violations);
  return violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")}`);
}

/** Returns how many pixels the contents are wider than the window. */
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
