// attack: every built-in at the very end of the memory, with each failure caught
// outcome: limit|killed|timeout e
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 2
const held: unknown[] = [];
const made = Array.from({ length: 60 }, (_, at) => `let a${at} = ${at}; if (a${at}) { (() => a${at})() }`).join(';');
const uses = [
  () => new Function(made), () => eval('(class A { #x = 1; static y = [...arguments] })'), () => new Map([[{}, {}]]), () => new Proxy({}, {}), () => Promise.resolve({}).then(() => {}), () => /(?<a>x)|y/dgu.exec('x'), () => 'ab'.repeat(999).split(''), () => JSON.parse('{"a": [1, {"b": "c"}]}'),
  () => JSON.stringify({ a: [{}] }), () => [...'abc'].map((x) => ({ x })), () => function* () { yield* [1]; }().next(), () => structuredClone({ a: new Map([[1, 2]]) }), () => new Error('x').stack, () => 2n ** 3000n, () => Symbol('x'), () => new WeakRef({}), () => Object.fromEntries(Object.entries({ a: 1 })),
  () => new Intl(), () => [3, 1, 2].toSorted(), () => new Date().toString(), () => new Set([1]).union(new Set([2])), () => Iterator.from([1]).map(String).toArray(), () => callTool('a.b', { c: 1 }).catch(() => {}), () => new TextEncoder().encode('x'.repeat(999)), () => `${held.length}`.padStart(999), () => async function* () {}(),
];
for (let size = 1 << 16; size >= 8; size >>= 1) {
  try {
    for (;;) held.push(new Uint8Array(size));
  } catch {}
}
for (let round = 0; ; round++) {
  for (const use of uses) {
    try {
      held.push(use());
    } catch {}
  }
  if (held.length > 1000) held.length -= round % 60;
}
