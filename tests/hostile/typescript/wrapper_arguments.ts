// attack: what is passed to the function around the program
// outcome: ok []
// control: none: a way into this library only
const got = [];
for (const code of ['arguments', 'arguments.callee', 'arguments[0]', 'new.target', 'super.x', 'this.$lockhouse_module', 'globalThis.$lockhouse_module']) {
  try {
    const value = eval(code);
    if (value !== undefined) got.push(code);
  } catch {}
}
got;
