// attack: recursion through every built-in that calls back: getters, proxies, sort, replace, iterators, conversion, eval
// outcome: ok []
// control: outside
const wrong = [];
const ways = {
  getter: () => { const it = { get x() { return it.x; } }; return it.x; }, proxy: () => { const it = new Proxy({}, { get: (_, key) => it[key] }); return it.x; },
  sort: () => { const f = () => [3, 2, 1].sort(f); return f(); }, replace: () => { const f = () => 'a'.replace(/a/, f); return f(); }, primitive: () => { const it = { toString: () => `${it}` }; return `${it}`; },
  reviver: () => { const f = () => JSON.parse('[1]', f); return f(); }, toJSON: () => { const it = { toJSON: () => JSON.stringify(it) }; return JSON.stringify(it); }, iterator: () => { const it = { [Symbol.iterator]: () => [...it] }; return [...it]; },
  'yield*': () => { const f = function* () { yield* f(); }; return f().next(); }, construct: () => { const f = function () { return new f(); }; return new f(); }, reflect: () => { const f = () => Reflect.apply(f, null, []); return f(); },
  bind: () => { const f = () => f.bind()(); return f(); }, apply: () => { const f = (...all) => f.apply(null, all); return f(...Array(100)); }, eval: () => { globalThis.f = () => (0, eval)('f()'); return f(); }, instanceof: () => { const it = { [Symbol.hasInstance]: () => 1 instanceof it }; return 1 instanceof it; },
  species: () => { const f = function () { return it.map((x) => x); }; const it = [1]; it.constructor = { [Symbol.species]: f }; return it.map((x) => x); }, template: () => { const f = () => f`${1}`; return f(); }, array: () => { const f = () => Array.from([1], f); return f(); },
};
for (const [name, way] of Object.entries(ways)) {
  try {
    way();
    wrong.push(name);
  } catch (error) {
    if (!(error instanceof RangeError) && !/stack|too much recursion/.test(String(error))) wrong.push(`${name}: ${error}`);
  }
}
wrong;
