// attack: vm2's escape through an error that the host makes of a hostile thrown value, and its prototype
// outcome: error process
// control: outside
const hostile = new Proxy(() => {}, { getPrototypeOf() { throw new Error('x'); }, get() { throw hostile; }, apply() { throw hostile; } });
const caught = [];
for (const use of [() => structuredClone(hostile), () => new URLSearchParams([hostile]), () => btoa(Symbol()), () => atob('%'), () => new TextDecoder('x'), () => queueMicrotask(1), () => crypto.getRandomValues(1)]) {
  try {
    use();
  } catch (error) {
    if (error !== hostile) caught.push(error);
  }
}
if (caught.length < 3) throw new Error(`only ${caught.length} errors`);
for (const error of caught) error.constructor.constructor('return process')().pid;
