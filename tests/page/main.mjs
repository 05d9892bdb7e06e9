// Starts Lockhouse and Chromium, and runs the parts of the test, or those that the command line names.

import { actions } from "./actions.mjs";
import { attacks } from "./attacks.mjs";
import { launch } from "./browser.mjs";
import { keyboard } from "./keyboard.mjs";
import { keys } from "./keys.mjs";
import { payloads } from "./payloads.mjs";
import { Product } from "./product.mjs";
import { rest } from "./rest.mjs";
import { failureCount, row } from "./rows.mjs";
import { views } from "./views.mjs";

const PARTS = { actions, keys, keyboard, views, payloads, attacks, rest };
const chosen = process.argv.slice(2);
for (const name of chosen) {
  if (!(name in PARTS)) {
    console.error(`tests/page: there is no part ${name}; the parts are ${Object.keys(PARTS).join(", ")}`);
    process.exit(2);
  }
}

const browser = await launch();
for (const [name, part] of Object.entries(PARTS)) {
  if (chosen.length && !chosen.includes(name)) continue;
  const product = new Product();
  try {
    await part({ product, browser });
  } catch (error) {
    await row(`${name}: the part ran to its end`, () => Promise.reject(error));
  } finally {
    await product.end();
  }
}
await browser.close();
process.exitCode = failureCount() ? 1 : 0;
