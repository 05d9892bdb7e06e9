// attack: toJSON on the prototypes of everything that can be in a result
// outcome: ok {"forged":[true]}
// control: none: a result is the library's own
for (const prototype of [Object.prototype, Array.prototype, String.prototype, Number.prototype, Boolean.prototype]) {
  Object.defineProperty(prototype, 'toJSON', { value() { return this?.inner === 1 ? { forged: [true] } : this; }, configurable: true });
}
({ inner: 1, x: 'y' });
