// attack: a built-in function that walks a Proxy of 2^53 elements
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
const long = new Proxy([], { get: (_, key) => (key === 'length' ? 2 ** 53 - 1 : 1), has: () => true });
Array.prototype.lastIndexOf.call(long, 2);
