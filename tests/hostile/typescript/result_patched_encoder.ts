// attack: patched built-ins forge or spoil what leaves as the result
// outcome: ok {"a":[1,"x"]}
// control: none: a result is the library's own
const forge = () => '{"forged": true}';
JSON.stringify = String.prototype.toWellFormed = Array.isArray = Object.getPrototypeOf = Object.create = String.fromCharCode = forge;
Object.defineProperty(Object.prototype, 'status', { set: forge, get: () => 'killed', configurable: true });
Array.prototype[Symbol.iterator] = Array.prototype.map = Array.prototype.every = Array.from = forge;
Promise.prototype.then = Promise.resolve = Function.prototype.call = Function.prototype.apply = Function.prototype.bind = forge;
({ a: [1, 'x'] });
