// attack: CallSite.getFunction gives the library's own functions; what they lead to is walked
// outcome: ok []
// control: none: its own, in the program: it must get functions of the library
const got = new Set();
Error.prepareStackTrace = (_, sites) => {
  for (const site of sites) if (site.getFunction()) got.add(site.getFunction());
  return '';
};
const take = () => void new Error().stack;
const trap = { toJSON: () => take(), toString: () => (take(), 'x'), get message() { return take(); }, valueOf: () => (take(), 1) };
const calls = [
  () => console.log('%s %d', { get x() { return take(); }, [Symbol.toStringTag]: 1 }, trap), () => callTool('a.b', trap).catch(take), () => mcp.a,
  () => structuredClone({ get x() { return take(); } }), () => btoa(trap), () => setTimeout(take, 0, trap), () => require(trap),
  () => import(trap), () => new URLSearchParams({ [Symbol.iterator]: () => (take(), []) }), () => describe(trap, 'x'),
  () => new TextDecoder({ toString: () => (take(), 'utf-8') }), () => searchTools({ get query() { return take(); } }),
  () => ['map', 'find', 'filter', 'join', 'slice', 'reduce', 'some'].map((name) => {
    const real = Array.prototype[name];
    Array.prototype[name] = function (...values) { take(); return real.apply(this, values); };
    try { console.log([1, { a: new Map([[1, 2]]) }]); callTool('x.y', [1]).catch(take); } catch {}
    Array.prototype[name] = real;
  }),
];
for (const call of calls) {
  try {
    await call();
  } catch {}
}
await new Promise((done) => setTimeout(done, 5));
Error.prepareStackTrace = undefined;
const names = [...got].map((made) => made.name);
if (!names.some((name) => ['showObject', 'invoke', 'request', 'encodeArguments', 'callTool'].includes(name))) throw new Error(`nothing of the library: ${names}`);
const found = [];
for (const made of got) {
  if (String(made).includes('[native code]')) continue;
  for (const key of Reflect.ownKeys(made)) {
    if (!['length', 'name', 'prototype', 'arguments', 'caller', 'inspect'].includes(String(key))) found.push(`${made.name}.${String(key)}`);
  }
  for (const key of ['arguments', 'caller']) {
    try {
      if (made[key]) found.push(`${made.name}.${key}`);
    } catch {}
  }
}
found;
