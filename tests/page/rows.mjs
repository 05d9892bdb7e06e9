// One row for each thing that is verified.

import { isDeepStrictEqual } from "node:util";

let failures = 0;

/** Verifies one thing, and prints whether it holds. A failure does not stop the others. */
export async function row(name, verify) {
  try {
    const figure = await verify();
    console.log(`pass    ${name}${typeof figure === "string" ? `: ${figure}` : ""}`);
  } catch (error) {
    failures += 1;
    console.log(`FAIL    ${name}\n        ${String(error.stack ?? error).split("\n").slice(0, 12).join("\n        ")}`);
  }
}

export function expect(condition, text) {
  if (!condition) throw new Error(text);
}

export function expectEqual(found, wanted, text = "") {
  if (!isDeepStrictEqual(found, wanted)) throw new Error(`${text} found ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

/** Waits until the condition holds, at most 20 s. */
export async function until(text, condition) {
  const end = Date.now() + 20_000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it did not happen within 20 s: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function failureCount() {
  return failures;
}
