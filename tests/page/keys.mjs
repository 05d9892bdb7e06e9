// Approvals that need a security key: Chromium's virtual authenticator is the key, and the engine verifies what it signs.

import { REFUND, active, question } from "./actions.mjs";
import { SIZES, open, show } from "./browser.mjs";
import { Product } from "./product.mjs";
import { expect, row } from "./rows.mjs";

export async function keys({ browser }) {
  if (process.getuid() !== 0) return console.log("keys: skipped, because only root permits the registration of a key");
  const product = new Product('presence = "key"\n');
  try {
    await approveWithKey(product, browser);
  } finally {
    await product.end();
  }
}

async function approveWithKey(product, browser) {
  const client = await product.client("claude-code");
  const served = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop });
  const { page, script } = await open(context, served.link);
  const key = await VirtualKey.add(context, page);
  await show(page, "approvals");

  await row("without a registered key, the page says who registers one", () => refused(page, client, "no key is registered"));
  await row("a wrong code registers no key", () => register(page, "AAAA-AAAA-AAAA-AAAA", "the code is wrong"));
  await row("the code of an administrator registers the key", async () => {
    const { output } = await product.command("approvals", "enroll");
    await register(page, /^[A-Z2-7]{16}$/m.exec(output)[0], "The key is registered.");
  });
  await row("the key approves a call", async () => {
    const { text } = await approve(page, client);
    expect(text.includes("4711"), text);
  });
  await row("the key approves “for this run”", async () => {
    const answer = client.run("from shop import refund\n[refund(order=n) for n in range(3)]\n");
    const asked = question(page);
    await active(asked);
    await asked.getByLabel(/^for this run/).check();
    await asked.getByRole("button", { name: "Approve" }).click();
    const { text } = await answer;
    expect(!text.includes("approval_declined"), text);
  });
  await key.verifiesUser(false);
  await row("a key that does not verify its user approves nothing", () => refused(page, client, "not allowed"));
  await key.verifiesUser(true);
  await row("which approves again when it does", () => approve(page, client).then(({ text }) => expect(text.includes("4711"), text)));
  await row("the audit log names the key, and that the code and the key were recorded", async () => {
    const { output } = await product.command("audit", "query", "--json");
    const records = output.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const approvals = records.filter((record) => record.presence === "key" && record.credential);
    expect(approvals.length >= 2, output);
  });
  await row("no policy is proposed on a host that nobody manages", async () => {
    const panel = page.locator("section", { hasText: "Proposed policy" });
    await panel.getByRole("button", { name: "Show" }).click();
    await panel.getByText("No policy is proposed.").waitFor();
  });
  await row("a proposed policy is shown as a difference, and accepted with what the key signs", async () => {
    await acceptPolicy(page, await key.credentials());
  });
  await row("no script ran that is not the page's", () => script.verify());
  await context.close();
}

/** Chromium's virtual authenticator, as the key of a page. */
export class VirtualKey {
  #devtools;
  #id;

  static async add(context, page) {
    const key = new VirtualKey();
    key.#devtools = await context.newCDPSession(page);
    await key.#devtools.send("WebAuthn.enable");
    const options = { protocol: "ctap2", transport: "usb", hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
    key.#id = (await key.#devtools.send("WebAuthn.addVirtualAuthenticator", { options })).authenticatorId;
    return key;
  }

  async verifiesUser(isUserVerified) {
    await this.#devtools.send("WebAuthn.setUserVerified", { authenticatorId: this.#id, isUserVerified });
  }

  async credentials() {
    const { credentials } = await this.#devtools.send("WebAuthn.getCredentials", { authenticatorId: this.#id });
    return credentials.map(({ credentialId }) => credentialId);
  }
}

/** Accepts a policy. The answers of the engine are those of a test: tests/tests/system_engine has the engine's own. */
async function acceptPolicy(page, credentials) {
  const change = { table: "servers.shop", entry: 'tool "<b>refund</b>"', approved: "ask", proposed: "allow", widens: true };
  const narrower = { ...change, entry: 'tool "list"', approved: "allow", proposed: null, widens: false };
  const proposal = { supervisor: 7, digest: "d".repeat(64), presence: "key", left_out: 0, changes: [change, narrower] };
  const sent = [];
  const answer = (path, body) =>
    page.route(`**/api/policy/${path}`, (route) => {
      sent.push([path, route.request().postDataJSON()]);
      return route.fulfill({ json: body });
    });
  await answer("proposals", { proposals: [proposal] });
  await answer("challenge", { challenge: "A".repeat(43), credentials, seconds: 60 });
  await answer("accept", { result: "accepted" });
  const panel = page.locator("section.panel", { hasText: "Proposed policy" }).first();
  await panel.getByRole("button", { name: "Show" }).click();
  await panel.getByText('tool "<b>refund</b>"').waitFor();
  const titles = await panel.locator("h3").allTextContents();
  expect(titles.join() === "It may permit more,It permits less", titles.join());
  await panel.getByRole("button", { name: "Accept this policy" }).click();
  await page.getByText("The policy is accepted and in force.").waitFor();
  const [, [, challenged], [, accepted]] = sent;
  expect(challenged.digest === proposal.digest && accepted.digest === proposal.digest, JSON.stringify(sent));
  expect(accepted.proof.credential && accepted.proof.signature, JSON.stringify(sent));
}

export async function register(page, code, expected) {
  const form = page.locator("details", { hasText: "Register a key" });
  if ((await form.getAttribute("open")) === null) await form.locator("summary").click();
  await form.locator("input[name=code]").fill(code);
  await form.getByRole("button", { name: "Register" }).click();
  await form.getByText(expected).waitFor();
}

export async function approve(page, client, program = REFUND) {
  const answer = client.run(program);
  const asked = question(page);
  await active(asked);
  await asked.getByRole("button", { name: "Approve" }).click();
  return answer;
}

/** Tries to approve, reads the reason on the page, and declines then. */
export async function refused(page, client, reason, program = REFUND) {
  const answer = client.run(program);
  const asked = question(page);
  await active(asked);
  await asked.getByRole("button", { name: "Approve" }).click();
  const shown = page.locator(".question").filter({ hasText: reason }).last();
  await shown.waitFor();
  const deny = asked.getByRole("button", { name: "Deny" });
  if (await deny.count()) await deny.click();
  const { text } = await answer;
  expect(text.includes("approval_declined"), text);
}
