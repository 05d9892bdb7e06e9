// attack: patched built-ins note all that the library hands them; what they note is searched for its native functions
// outcome: ok []
// control: none: its own, in the program: they must note tables of the library
const noted = new Set();
const note = (...values) => values.forEach((value) => (typeof value === 'object' || typeof value === 'function') && value && noted.add(value));
const add = noted.add.bind(noted);
const { apply, ownKeys, getOwnPropertyDescriptor } = Reflect;
let on = false;
for (const owner of [Map.prototype, WeakMap.prototype, Set.prototype, Array.prototype, String.prototype, RegExp.prototype, Promise.prototype, Function.prototype, Object, Reflect, Array, JSON, Number, Math]) {
  for (const key of ownKeys(owner)) {
    const { value: real, writable } = getOwnPropertyDescriptor(owner, key);
    if (typeof real !== 'function' || !writable || key === 'constructor' || real === Reflect.apply) continue;
    owner[key] = function (...values) {
      if (on) {
        on = false;
        if (this && typeof this === 'object') add(this);
        for (let at = 0; at < values.length; at++) if (values[at] && typeof values[at] !== 'string') add(values[at]);
        on = true;
      }
      return new.target ? new real(...values) : apply(real, this, values);
    };
  }
}
on = true;
const uses = [
  () => console.log({ a: [1, new Map([[1, new Set([2])]])] }, '%s', 5), () => console.error(new Error('x')), () => callTool('a.b', { x: 1 }), () => mcp.nobody,
  () => searchTools('x'), () => listServers(), () => setTimeout(() => {}, 0), () => structuredClone([1, new Map()]), () => atob(btoa('x')),
  () => new TextDecoder().decode(new TextEncoder().encode('x')), () => new URLSearchParams('a=b').toString(), () => crypto.randomUUID(), () => require('fs'), () => import('fs'),
];
for (const use of uses) {
  try {
    await use();
  } catch {}
}
on = false;
const tables = [...noted].filter((value) => value instanceof Map).length;
if (tables < 2) throw new Error(`the control noted ${noted.size} objects, ${tables} tables`);
const found = [];
const search = (value, depth) => {
  if (!value || (typeof value !== 'object' && typeof value !== 'function') || depth > 3) return;
  for (const key of ownKeys(value)) {
    if (/^(start|ask|print|randomBytes|startTimer|stopTimer|fromBase64|frames|settle|serve|fire)$/.test(String(key))) found.push(String(key));
    search(getOwnPropertyDescriptor(value, key)?.value, depth + 1);
  }
};
for (const value of noted) if (value !== console && value !== Math && value !== crypto) search(value, 0);
[...new Set(found)];
