// attack: weak references that are followed while their objects are collected, and callbacks that bring them back
// outcome: ok [5000,true]
// control: none: when Node.js collects is not for a program to say
let called = 0;
const held = [];
const references = [];
const registry = new FinalizationRegistry((at) => {
  called++;
  const found = references[at].deref();
  if (found) held.push(found.self.self);
});
const keys = new WeakMap();
for (let count = 0; count < 5000; count++) {
  const object = { count };
  object.self = object;
  keys.set(object, { object });
  references.push(new WeakRef(object));
  registry.register(object, count, object);
  if (count % 3 === 0) registry.unregister(object);
}
await new Promise((done) => setTimeout(done, 5));
for (const reference of references) reference.deref()?.self.count.toString();
[references.length, held.every((object) => object.self === object)];
