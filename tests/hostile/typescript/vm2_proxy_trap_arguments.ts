// attack: vm2's escape through what a Proxy's trap is given when the host shows or encodes it
// outcome: ok []
// control: none: its own, in the program: traps must run while the library is at work
const taken = new Set();
const handler = new Proxy({}, {
  get: (_, trap) => (target, ...values) => {
    for (const value of values) if (value && typeof value === 'object') taken.add(value);
    taken.add(trap);
    return Reflect[trap](target, ...values);
  },
});
const bait = new Proxy({ a: 1 }, handler);
for (const use of [() => console.log(bait), () => callTool('a.b', bait), () => structuredClone(bait), () => console.log('%o %j', bait, bait), () => searchTools(bait)]) {
  try {
    await use();
  } catch {}
}
if (!taken.has('get') || !taken.has('ownKeys')) throw new Error('no trap ran');
[...taken].filter((value) => typeof value === 'object' && value !== bait && Object.getPrototypeOf(value) !== Object.prototype).map((value) => Object.keys(value));
