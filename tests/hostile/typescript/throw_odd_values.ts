// attack: each kind of thrown value that is not an Error is caught from a call of the library, and reported
// outcome: error the program threw
// control: none: every throw fails
const odd = [undefined, null, 0, -0, NaN, 1n, '', Symbol('x'), [], () => {}, Object.create(null), new Proxy({}, {}), globalThis, new Date(NaN), /x/];
for (const value of odd) {
  try {
    structuredClone({ get x() { throw value; } });
  } catch (thrown) {
    if (!Object.is(thrown, value)) throw new Error('another value');
  }
  await new Promise((_, fail) => fail(value)).catch(() => {});
}
throw Object.create(null);
