// attack: chains of thirty thousand proxies and thousands of bound functions, classes and prototypes, followed to their end
// outcome: ok []
// control: none: others have other stacks
// limits: memory_mib = 512, timeout_seconds = 30
const wrong = [];
const chain = (first, next, count = 3e4) => {
  let it = first;
  for (let at = 0; at < count; at++) it = next(it);
  return it;
};
const proxies = chain(class {}, (it) => new Proxy(it, {}));
const bound = chain(function () {}, (it) => it.bind(null, 1), 3e3);
const ways = [
  () => proxies.x, () => 'x' in proxies, () => (proxies.x = 1), () => delete proxies.x, () => Object.keys(proxies), () => new proxies(), () => Object.getPrototypeOf(proxies), () => Reflect.construct(Array, [], proxies), () => ({}) instanceof proxies, () => Object.freeze(proxies),
  () => Array.isArray(chain([], (it) => new Proxy(it, {}))), () => bound(), () => new bound(), () => ({}) instanceof bound, () => new (chain(class {}, (it) => class extends it {}, 2e4))(), () => chain({}, (it) => Object.create(new Proxy(it, {})), 3e4).x, () => chain({}, Object.create).x,
  () => chain([1], (it) => [it]).flat(Infinity), () => String(chain([1], (it) => [it])), () => structuredClone(chain([1], (it) => [it])), () => console.log(chain([1], (it) => [it]), proxies), () => new Error('x', { cause: chain(null, (cause) => new Error('x', { cause })) }).stack,
];
for (const way of ways) {
  try {
    way();
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof TypeError)) wrong.push(`${way}: ${error}`);
  }
}
wrong;
