// The same actions with the keyboard alone: no mouse event is ever sent.

import { DELETE, ENDLESS, LONG, REFUND, CHANGED_TOOLS, active, question } from "./actions.mjs";
import { SIZES, VIEWS, open } from "./browser.mjs";
import { expect, expectEqual, row, until } from "./rows.mjs";

/** Presses Tab until an element has the focus that matches; fails after 80 presses. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  throw new Error(`Tab does not reach ${selector}`);
}

/** Presses Tab until a button or link with this name has the focus. */
async function tabToButton(page, name) {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((text) => document.activeElement.innerText?.trim().startsWith(text), name)) return;
  }
  throw new Error(`Tab does not reach the button ${name}`);
}

/** Shows a view by its number. */
async function goTo(page, view) {
  // Leaves a field, in which digits are text.
  await page.keyboard.press("Escape");
  await page.keyboard.press(String(VIEWS.indexOf(view) + 1));
  await page.waitForFunction((name) => document.querySelector("#views [aria-current=page]")?.hash === `#/${name}`, view);
}

const focusIsVisible = (page) =>
  page.evaluate(() => document.activeElement !== document.body && getComputedStyle(document.activeElement).outlineStyle !== "none");

export async function keyboard({ product, browser }) {
  const client = await product.client("claude-code");
  const process = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop, acceptDownloads: true });
  const { page, script } = await open(context, process.link);
  await page.evaluate(() => {
    window.mouseEvents = 0;
    for (const kind of ["mousedown", "mousemove", "pointerdown", "touchstart"]) {
      addEventListener(kind, () => (window.mouseEvents += 1), true);
    }
  });
  await row("keyboard: the skip link leads to the content", () => skipLink(page));
  await row("keyboard: arrow keys move in the list of views, and Enter shows one", () => viewList(page));
  await row("keyboard: every control that receives the focus shows it", () => visibleFocus(page));
  await row("keyboard: a call is approved", () => answerQuestion(page, client, "Approve"));
  await row("keyboard: a call is denied", () => answerQuestion(page, client, "Deny"));
  await row("keyboard: a run is ended", () => endRun(page, client));
  await row("keyboard: a suggested rule is applied", () => applyRule(page, client, product));
  await row("keyboard: a changed definition is accepted", () => acceptDefinition(page, client, product));
  await row("keyboard: the audit log is filtered", () => filterAudit(page));
  await row("keyboard: a kept value is downloaded", () => download(page, client));
  await row("keyboard: single keys can be turned off", () => shortcutsOff(page));
  await row("keyboard: no mouse event occurred", async () => expectEqual(await page.evaluate(() => window.mouseEvents), 0));
  await row("no script ran that is not the page's", () => script.verify());
  await context.close();
}

async function skipLink(page) {
  await page.keyboard.press("Tab");
  expectEqual(await page.evaluate(() => document.activeElement.id), "skip");
  await page.keyboard.press("Enter");
  expectEqual(await page.evaluate(() => document.activeElement.id), "main");
}

async function viewList(page) {
  await goTo(page, "overview");
  await page.evaluate(() => document.getElementById("help").focus());
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement.matches("#views a[aria-current=page]")), "Tab does not reach the list of views");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#views [aria-current=page]")?.hash === "#/runs");
}

async function visibleFocus(page) {
  for (const view of VIEWS) {
    await goTo(page, view);
    for (let presses = 0; presses < 8; presses += 1) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => document.activeElement.outerHTML.slice(0, 100));
      expect(name.startsWith("<body") || (await focusIsVisible(page)), `${view}: the focus is not visible on ${name}`);
    }
  }
}

async function answerQuestion(page, client, verb) {
  await goTo(page, "approvals");
  const answer = client.run(REFUND);
  await active(question(page));
  await page.keyboard.press("j");
  await tabToButton(page, verb);
  await page.keyboard.press("Enter");
  const { text } = await answer;
  expect(verb === "Approve" ? text.includes("4711") : text.includes("approval_declined"), text);
  // The focus moves when the answer has reached the page.
  await page.waitForFunction(() => document.activeElement.matches(".question"));
}

async function endRun(page, client) {
  await goTo(page, "runs");
  const answer = client.run(ENDLESS);
  await page.locator("tbody tr", { hasText: "running" }).first().waitFor();
  await page.keyboard.press("j");
  await tabTo(page, 'button[aria-label^="End the run"]');
  await page.keyboard.press("Enter");
  await tabToButton(page, "End the run");
  await page.keyboard.press("Enter");
  const { text } = await answer;
  expect(text.includes("Cancelled") || text.includes("a person ended it"), text);
}

async function applyRule(page, client, product) {
  await client.run(DELETE);
  await goTo(page, "denials");
  await page.locator("article", { hasText: "shop.delete_customer" }).first().waitFor();
  await page.keyboard.press("j");
  await tabToButton(page, "Allow always");
  await page.keyboard.press("Enter");
  await page.locator(".diff .added").first().waitFor();
  await tabToButton(page, "Apply this change");
  await page.keyboard.press("Enter");
  await page.getByText("The policy was changed").waitFor();
  expect(product.policy().includes("delete_customer"), product.policy());
  expect(!(await client.run(DELETE)).isError, "the call is still denied");
}

async function acceptDefinition(page, client, product) {
  product.setTools(CHANGED_TOOLS);
  await goTo(page, "servers");
  await page.getByRole("button", { name: "Review the changes" }).waitFor();
  await page.keyboard.press("j");
  await tabToButton(page, "Review the changes");
  await page.keyboard.press("Enter");
  await page.locator(".diff .added").first().waitFor();
  await tabToButton(page, "Accept these definitions");
  await page.keyboard.press("Enter");
  await until("the changed tool can be called", async () => !(await client.run("from shop import orders\norders(text='today')\n")).isError);
}

async function filterAudit(page) {
  await goTo(page, "audit");
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement.matches('[role="search"] input')), "the filter has no focus");
  await page.keyboard.type("shop");
  await page.keyboard.press("Tab");
  await page.keyboard.type("delete_customer");
  await page.keyboard.press("Enter");
  const subjects = () => page.locator('tbody td[data-label="Subject"]').allInnerTexts();
  await until("only records of the tool are listed", async () => {
    const found = await subjects();
    return found.length > 0 && found.every((subject) => subject.includes("shop.delete_customer"));
  });
}

async function download(page, client) {
  await client.run(LONG);
  await goTo(page, "results");
  await page.getByRole("button", { name: /^Download/ }).first().waitFor();
  await tabToButton(page, "Download");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  expect((await saved.failure()) === null, "the download failed");
}

async function shortcutsOff(page) {
  await page.keyboard.press("?");
  await tabTo(page, "dialog input");
  await page.keyboard.press("Space");
  await page.keyboard.press("Escape");
  const before = await page.evaluate(() => location.hash);
  await page.keyboard.press("1");
  expectEqual(await page.evaluate(() => location.hash), before);
}
