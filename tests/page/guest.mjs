// The part of packaging/systemd/overlay-presence in which a person of a managed host approves with a key: Chromium shows the
// page, and its virtual authenticator is the key. The engine verifies what it signs.
//   guest.mjs CODE     the code with which root permits the registration of one key

import { SIZES, launch, open, show } from "./browser.mjs";
import { VirtualKey, approve, refused, register } from "./keys.mjs";
import { Product } from "./product.mjs";
import { expectEqual, failureCount, row } from "./rows.mjs";

const [code] = process.argv.slice(2);
const PROGRAM = "from tickets import echo\necho(value=7)\n";

const browser = await launch();
const product = new Product();
try {
  await approveInGuest();
} finally {
  await product.end();
  await browser.close();
}
process.exitCode = failureCount() ? 1 : 0;

async function approveInGuest() {
  const client = await product.client("claude-code");
  const served = await product.page();
  const context = await browser.newContext({ viewport: SIZES.laptop });
  const { page, script } = await open(context, served.link);
  const key = await VirtualKey.add(context, page);
  await show(page, "approvals");
  await row("without a registered key nothing is approved", () => refused(page, client, "no key is registered", PROGRAM));
  await row("the code of root registers the key", () => register(page, code, "The key is registered."));
  await row("the same code registers no second key", () => register(page, code, "the code is wrong"));
  await row("the key approves the call, and the answer is whole", () => isApproved(page, client));
  await key.verifiesUser(false);
  await row("a key that does not verify its user approves nothing", () => refused(page, client, "not allowed", PROGRAM));
  await key.verifiesUser(true);
  await row("control: it approves when it does", () => isApproved(page, client));
  await row("no script ran that is not the page's", () => script.verify());
  await context.close();
}

async function isApproved(page, client) {
  const { text, isError } = await approve(page, client, PROGRAM);
  expectEqual({ value: JSON.parse(text), isError }, { value: { value: 7 }, isError: false });
}
