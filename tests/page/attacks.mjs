// Attacks on the page from other origins, by DNS rebinding, and without a session. Each has a control that shows that the same
// request works from the page itself.

import { createServer } from "node:http";

import { REFUND, active, question } from "./actions.mjs";
import { SIZES, accessibilityFindings, open, show } from "./browser.mjs";
import { expect, expectEqual, row } from "./rows.mjs";

export async function attacks({ product, browser }) {
  const client = await product.client("claude-code");
  const process = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop });
  const { page } = await open(context, process.link);
  await show(page, "approvals");
  const answer = client.run(REFUND);
  await active(question(page));
  const asked = await pendingQuestion(page);

  const other = createServer((request, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><title>other</title><body>"));
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  const hosts = { "another port": `http://localhost:${other.address().port}`, "another name": `http://127.0.0.1:${other.address().port}` };
  for (const [name, origin] of Object.entries(hosts)) {
    const foreign = await context.newPage();
    await foreign.goto(origin);
    await row(`a page of ${name} cannot read`, () => cannotRead(foreign, process.origin));
    await row(`a page of ${name} cannot answer a question or change the policy`, () => cannotChange(foreign, page, process.origin, asked));
    await row(`a page of ${name} cannot frame the page or load its data as a script`, () => cannotEmbed(foreign, process.origin));
    await foreign.close();
  }
  await row("DNS rebinding: the page answers to its own address alone", () => rebinding(context, process));
  await row("without a token, with a wrong and with a used one, there is no session", () => tokens(browser, process));
  await row("neither the key alone nor the cookie alone is a session", () => halfSessions(browser, context, page, process));
  await row("after all of this the question is still pending, and its person can answer", async () => {
    expectEqual((await pendingQuestion(page)).digest, asked.digest);
    await question(page).getByRole("button", { name: "Approve" }).click();
    expect(!(await answer).isError, (await answer).text);
  });
  await new Promise((resolve) => other.close(resolve));
  await context.close();
}

/** Reads the pending question from the stream, in the page itself. This is the control of reading. */
async function pendingQuestion(page) {
  return page.evaluate(async () => {
    const abort = new AbortController();
    const headers = { "X-Lockhouse-Page": localStorage.getItem("session-key") };
    const { body } = await fetch("/api/events", { headers, signal: abort.signal });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ; ) {
      text += (await reader.read()).value;
      const found = /event: approvals\ndata: (.*)\n\n/.exec(text);
      if (!found) continue;
      abort.abort();
      return JSON.parse(found[1]).questions[0];
    }
  });
}

async function cannotRead(foreign, origin) {
  const read = await foreign.evaluate(async (target) => {
    const attempts = {};
    for (const path of ["/", "/api/events", "/api/audit", "/assets/app.js"]) {
      for (const mode of ["cors", "no-cors"]) {
        const options = { mode, credentials: "include" };
        attempts[`${mode} ${path}`] = await fetch(target + path, options).then((answer) => answer.text()).catch(() => "");
      }
    }
    attempts["with the header"] = await fetch(`${target}/api/audit`, { credentials: "include", headers: { "X-Lockhouse-Page": "x" } })
      .then((answer) => answer.text())
      .catch(() => "");
    attempts["event source"] = await new Promise((resolve) => {
      const source = new EventSource(`${target}/api/events`, { withCredentials: true });
      source.onmessage = source.onopen = () => resolve("opened");
      source.onerror = () => (source.close(), resolve(""));
    });
    return Object.entries(attempts).filter(([, text]) => text !== "").map(([name]) => name);
  }, origin);
  expectEqual(read, [], "what could be read:");
}

async function cannotChange(foreign, page, origin, asked) {
  const { supervisor, id, digest } = asked;
  const requests = {
    "/api/approvals/answer": { supervisor, id, digest, decision: "approve", scope: "once" },
    "/api/policy/apply": { server: "shop", tool: "delete_customer", effect: "allow", digest: "sha256:0" },
    "/api/runs/end": { supervisor, execution: "0" },
  };
  for (const [path, value] of Object.entries(requests)) {
    const request = { url: origin + path, body: JSON.stringify(value) };
    await foreign.evaluate(sendRequests, request);
    const isForm = (answer) => answer.url() === request.url && answer.request().isNavigationRequest();
    const answered = foreign.waitForResponse(isForm, { timeout: 10_000 });
    await foreign.evaluate(submitForm, request);
    expectEqual((await answered).status(), 403, `${path} by a form:`);
  }
  expectEqual((await pendingQuestion(page)).digest, digest, "the pending question:");
}

/** Runs in the foreign page. */
async function sendRequests({ url, body }) {
  for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
    for (const mode of ["cors", "no-cors"]) {
      await fetch(url, { method: "POST", mode, credentials: "include", headers: { "Content-Type": type }, body }).catch(() => {});
    }
    const headers = { "Content-Type": type, "X-Lockhouse-Page": "x" };
    await fetch(url, { method: "POST", credentials: "include", headers, body }).catch(() => {});
  }
  navigator.sendBeacon(url, new Blob([body], { type: "text/plain" }));
}

/** Runs in the foreign page. The body of the form is JSON with one further member. */
function submitForm({ url, body }) {
  const frame = document.createElement("iframe");
  frame.name = `target of ${url}`;
  document.body.append(frame);
  const form = document.body.appendChild(document.createElement("form"));
  Object.assign(form, { method: "POST", action: url, enctype: "text/plain", target: frame.name });
  const input = form.appendChild(document.createElement("input"));
  Object.assign(input, { name: `${body.slice(0, -1)}, "x": "`, value: '"}' });
  form.submit();
}

async function cannotEmbed(foreign, origin) {
  const findings = await foreign.evaluate(async (target) => {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.src = target;
    await new Promise((resolve) => (frame.onload = resolve));
    const loads = (tag, attribute, path) =>
      new Promise((resolve) => {
        const element = document.createElement(tag);
        element.onload = () => resolve(true);
        element.onerror = () => resolve(false);
        element[attribute] = target + path;
        document.body.append(element);
      });
    return {
      script: await loads("script", "src", "/api/audit"),
      asset: await loads("script", "src", "/assets/theme.js"),
      image: await loads("img", "src", "/assets/icon.svg"),
    };
  }, origin);
  expectEqual(findings, { script: false, asset: false, image: false }, "what could be loaded:");
  const framed = foreign.frames().map((frame) => frame.url());
  expect(!framed.some((url) => url.startsWith(origin)), `the page was framed: ${framed}`);
}

async function rebinding(context, process) {
  const page = await context.newPage();
  const control = await page.goto(`http://127.0.0.1:${process.port}/`);
  expectEqual(control.status(), 200, "control:");
  const answer = await page.goto(`http://evil.test:${process.port}/`);
  expectEqual(answer.status(), 421);
  const found = await page.evaluate(async () => {
    const post = { method: "POST", headers: { "Content-Type": "application/json", "X-Lockhouse-Page": "login" }, body: '{"token":"00"}' };
    return [(await fetch("/api/login", post)).status, (await fetch("/api/audit")).status, (await fetch("/assets/app.js")).status];
  });
  expectEqual(found, [421, 421, 421]);
  await page.close();
}

async function tokens(browser, process) {
  const links = { none: process.origin, wrong: `${process.origin}/#token=${"0".repeat(64)}`, used: process.link };
  for (const [name, link] of Object.entries(links)) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(link);
    await page.getByText("This page needs a new link").waitFor();
    expect(!page.url().includes("token="), `${name}: the token stays in the address`);
    const status = await page.evaluate(async () => (await fetch("/api/audit")).status);
    expectEqual(status, 401, `${name}: status of the audit log:`);
    expectEqual(await accessibilityFindings(page), [], "axe-core:");
    await context.close();
  }
}

async function halfSessions(browser, context, page, process) {
  const status = (tab) =>
    tab.evaluate(async () => (await fetch("/api/audit", { headers: { "X-Lockhouse-Page": localStorage.getItem("session-key") ?? "" } })).status);
  expectEqual(await status(page), 200, "control:");
  const key = await page.evaluate(() => localStorage.getItem("session-key"));
  const cookies = await context.cookies(process.origin);
  expect(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
  const keyOnly = await browser.newContext();
  const cookieOnly = await browser.newContext();
  await cookieOnly.addCookies(cookies);
  for (const [half, stolen] of [[keyOnly, key], [cookieOnly, ""]]) {
    const tab = await half.newPage();
    await tab.goto(`${process.origin}/`);
    await tab.evaluate((value) => localStorage.setItem("session-key", value), stolen);
    expectEqual(await status(tab), 401);
    await half.close();
  }
}
