// attack: spreading, destructuring, Array.from and Map.groupBy of an iterator without an end
// outcome: limit|error memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
const endless = { [Symbol.iterator]: () => ({ next: () => ({ value: new Array(99), done: false }) }) };
const wrong = [() => [...endless], () => Math.max(...endless), () => new Set(endless), () => Array.from(endless)];
for (const way of wrong.slice(0, -1)) {
  try {
    way();
  } catch {}
}
wrong.at(-1)();
