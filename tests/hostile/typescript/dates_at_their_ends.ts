// attack: dates, locales and number formats at their ends
// outcome: ok []
// control: outside
const wrong = [];
const ends = [NaN, Infinity, -Infinity, 8.64e15, -8.64e15, 8.64e15 + 1, 2 ** 53, 1e308, -1e308, 5e-324, -0];
for (const a of ends) {
  for (const method of Object.getOwnPropertyNames(Date.prototype)) {
    try {
      const got = new Date(a)[method](a, a, a, a);
      if (typeof got === 'string' && got.length > 200) wrong.push([method, a]);
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof TypeError)) wrong.push([method, a, String(error)]);
    }
  }
  for (const way of [() => a.toLocaleString('x'.repeat(1e5)), () => new Date(a).toLocaleString('en', { timeZone: '../../etc/passwd' }), () => 'a'.localeCompare('b', '../../etc/passwd'), () => a.toFixed(100), () => a.toString(36), () => a.toPrecision(100), () => Date.UTC(a, a, a, a), () => Date.parse(`${a}-${a}-${a}T${a}`), () => 'İß'.repeat(1e4).toLocaleUpperCase('tr').normalize('NFKD')]) {
    try {
      way();
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof TypeError)) wrong.push([String(way), a, String(error)]);
    }
  }
}
Date.parse('9'.repeat(1e6));
wrong;
