// attack: a then on Object.prototype enters an asynchronous generator again while it settles its requests
// outcome: ok "whole"
// control: outside
let it;
let inside = false;
let hits = 0;
const { then } = Promise.prototype;
Object.defineProperty(Object.prototype, 'then', {
  configurable: true,
  get() {
    if (inside || !it || this instanceof Promise) return undefined;
    inside = true;
    try {
      [() => it.return(0), () => it.next(1), () => it.throw(1), () => it.return(Promise.resolve({}))][hits++ % 4]().catch(() => {});
      it.next({}).catch(() => {});
    } catch {}
    inside = false;
    return undefined;
  },
});
for (let round = 0; round < 50; round++) {
  let release;
  const gate = new Promise((done) => (release = done));
  it = (async function* () {
    try {
      yield await gate;
      yield { a: 1 };
    } finally {
      await {};
      yield {};
    }
  })();
  const all = [it.next({}), it.return({}), it.next({}), it.throw({})];
  release({});
  for (const one of all) then.call(one, () => {}, () => {});
  await Promise.allSettled(all);
}
delete Object.prototype.then;
'whole';
