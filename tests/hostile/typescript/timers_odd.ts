// attack: delays and callbacks that are no such thing
// outcome: ok [12,3]
// control: none: Node.js gives objects for timers
let fired = 0;
let refused = 0;
for (const delay of [NaN, -1, Infinity, 2 ** 31, 1e300, '7', [], {}, null, undefined, -0, true]) setTimeout(() => fired++, delay);
for (const callback of ['fired = 1e9', null, {}]) {
  try {
    setTimeout(callback, 0);
  } catch {
    refused++;
  }
}
clearTimeout({ valueOf: () => { throw new Error('x'); } }?.x);
clearTimeout(-1);
await new Promise((done) => setTimeout(done, 100));
[fired, refused];
