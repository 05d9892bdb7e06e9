// Every view at every size, light and dark: nothing is wider than the window, and axe-core has no serious finding. Writes
// the pictures of the documents if PICTURES names a folder.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { CHANGED_TOOLS, DELETE, LONG, REFUND, active, question } from "./actions.mjs";
import { SIZES, VIEWS, accessibilityFindings, open, overflow, show } from "./browser.mjs";
import { expectEqual, row, until } from "./rows.mjs";

/** A program whose calls overlap, are denied and wait for approval. */
const SHOWCASE = `import * as shop from "./servers/shop";

const today = await shop.orders({ text: "today" });
const names = ["ann", "bob", "eve", "joe"];
const found = await Promise.all(names.map((text) => shop.customers({ text })));
try {
  await shop.delete_customer({ text: "joe" });
} catch (error) {
  console.log(error.message);
}
await shop.refund({ order: 4711, amount: 129.9 });
await shop.orders({ text: "today" });
found.length;
`;

export async function views({ product, browser }) {
  product.setAnswers({ orders: { text: "x".repeat(60_000), seconds: 0.25 }, customers: { text: "y".repeat(20_000), seconds: 0.12 } });
  const process = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop });
  const { page, script } = await open(context, process.link);
  const shown = await prepare(product, page);
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const view of [...VIEWS, `runs/${shown.execution}`]) {
        await row(`${size}, ${colorScheme}: ${view.startsWith("runs/") ? "details of a run" : view}`, () => verifyView(page, view));
      }
      await row(`${size}, ${colorScheme}: list of shortcuts`, () => verifyHelp(page));
    }
  }
  if (globalThis.process.env.PICTURES) await takePictures(page, shown.execution, globalThis.process.env.PICTURES);
  await row("no script ran that is not the page's", () => script.verify());
  await page.setViewportSize(SIZES.laptop);
  await show(page, "approvals");
  await active(question(page));
  await question(page).getByRole("button", { name: "Deny" }).click();
  await shown.pending;
  await context.close();
}

/** Makes something for every view to show. Returns the run whose details are shown, and a run that waits for an answer. */
async function prepare(product, page) {
  const [claude, cursor] = [await product.client("claude-code"), await product.client("cursor")];
  await cursor.run(DELETE);
  await cursor.run(LONG);
  const showcase = claude.run(SHOWCASE, { language: "typescript" });
  await show(page, "approvals");
  await active(question(page));
  await question(page).getByRole("button", { name: "Approve" }).click();
  await showcase;
  await show(page, "runs");
  const link = page.locator("tbody tr", { hasText: "claude-code" }).first().locator("a");
  const execution = decodeURIComponent((await link.getAttribute("href")).replace("#/runs/", ""));
  product.setTools(CHANGED_TOOLS);
  const pending = cursor.run(REFUND);
  await show(page, "servers");
  await page.getByRole("button", { name: "Review the changes" }).click();
  await page.locator(".diff").first().waitFor();
  await show(page, "approvals");
  await active(question(page));
  return { execution, pending };
}

async function verifyView(page, view) {
  await show(page, view);
  if (view === "audit") await until("records are listed", () => page.locator("tbody tr").count());
  if (view.startsWith("runs/")) {
    await page.locator(".waterfall .bar").first().waitFor();
    await page.locator("details").first().evaluate((details) => (details.open = true));
  }
  // Buttons of questions are dimmed while they are inactive.
  if (view === "approvals") await active(question(page));
  expectEqual(await overflow(page), 0, "pixels wider than the window:");
  expectEqual(await accessibilityFindings(page), [], "axe-core:");
}

async function verifyHelp(page) {
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  expectEqual(await accessibilityFindings(page), [], "axe-core:");
  await page.keyboard.press("Escape");
}

async function takePictures(page, execution, folder) {
  mkdirSync(folder, { recursive: true });
  await page.setViewportSize({ width: 1200, height: 750 });
  const pictures = { overview: "light", approvals: "light", [`runs/${execution}`]: "dark" };
  for (const [view, colorScheme] of Object.entries(pictures)) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await show(page, view);
    if (view === "approvals") await active(question(page));
    if (view.startsWith("runs/")) await page.locator(".waterfall .bar").first().waitFor();
    await page.screenshot({ path: join(folder, `page-${view.split("/")[0]}.png`) });
  }
}
