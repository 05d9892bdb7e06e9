// attack: objects whose properties go, move and become others while they are copied, listed and compared
// outcome: ok "whole"
// control: outside
const foreign = [];
const make = (count) => {
  const object = {};
  for (let at = 0; at < count; at++) object[`key${at}`] = { at };
  let armed = true;
  Object.defineProperty(object, 'key3', { enumerable: true, configurable: true, get() {
    if (armed) {
      armed = false;
      for (let at = 4; at < count; at++) delete object[`key${at}`];
      for (let at = 0; at < 500; at++) object[`other${at}`] = 1.5;
      Object.setPrototypeOf(object, new Proxy({}, {}));
    }
    return 1;
  } });
  return object;
};
const uses = [(o) => Object.assign({}, o), (o) => ({ ...o }), (o) => Object.entries(o), (o) => Object.values(o), (o) => JSON.parse(JSON.stringify(o)), (o) => { const { key0, ...rest } = o; return rest; }, (o) => Object.fromEntries(Object.entries(o)), (o) => { const all = {}; for (const key in o) all[key] = o[key]; return all; }, (o) => Object.getOwnPropertyDescriptors(o), (o) => Object.defineProperties({}, Object.fromEntries(Object.keys(o).map((key) => [key, { get value() { return o[key]; }, enumerable: true }]))), (o) => structuredClone(o), (o) => Object.freeze(o), (o) => Reflect.ownKeys(o).map((key) => o[key])];
for (const use of uses) {
  for (const count of [5, 50, 500]) {
    try {
      for (const value of Object.values(use(make(count)))) if (!['object', 'number', 'undefined'].includes(typeof value) && !Array.isArray(value)) foreign.push(typeof value);
    } catch (error) {
      if (!(error instanceof TypeError)) foreign.push(String(error));
    }
  }
}
foreign.length ? foreign : 'whole';
