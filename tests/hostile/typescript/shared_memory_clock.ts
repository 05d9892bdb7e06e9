// attack: a clock finer than the language's, from shared memory and a thread that counts
// outcome: error Worker is not defined
// control: none: Node.js has Worker in a module
const shared = new Int32Array(new SharedArrayBuffer(8));
new Worker('x');
Atomics.load(shared, 0);
