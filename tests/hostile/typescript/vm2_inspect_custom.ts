// attack: vm2's escape through a custom inspect that the host calls with its own functions
// outcome: ok 0
// control: outside
let called = 0;
const thief = {
  [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) {
    called += inspect.constructor.constructor('return process')().pid > 0 ? 1 : 0;
    return 'x';
  },
  inspect(...values) {
    called += values.length;
  },
};
console.log(thief, [thief], new Map([[thief, thief]]));
if (globalThis.process && called === 0) throw new Error('the control was not called');
called;
