// attack: a symbol whose end frees a weak reference to it while its references are being taken apart: QuickJS aborts
// outcome: killed the worker
// control: none: others collect in other ways
let key: symbol | undefined = Symbol('key');
let other: object | undefined = {};
const map = new WeakMap<WeakKey, unknown>();
map.set(other, new WeakRef(key));
map.set(key, other);
other = undefined;
key = undefined;
