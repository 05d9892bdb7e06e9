// attack: calls with more arguments than a stack holds
// outcome: ok ["RangeError","RangeError",65535]
// control: none: others have other limits
const results = [];
for (const way of [() => Math.max(...Array(1e6).fill(1)), () => String.fromCharCode.apply(null, { length: 2 ** 32 - 1 }), () => ((...all) => all.length).apply(null, Array(65535))]) {
  try {
    results.push(way());
  } catch (error) {
    results.push(error.name);
  }
}
results;
