// attack: setters on Object.prototype for the names of the library's records, hoping to be given one of its objects
// outcome: ok [1,2,[]]
// control: none: a result is the library's own
const taken = [];
const names = 'code message server tool retryable content structured text type data resource blob name identifier description list proxy properties functions callback delay repeats native id resolve reject shape stack subject line column status error outcome kind first second third 0 1 2 length then'.split(' ');
for (const name of names) {
  Object.defineProperty(Object.prototype, name, { configurable: true, get: () => undefined, set(value) { if (Object(value) === value) taken.push(name); } });
}
await fixture.echo({ value: 1 }).catch(() => {});
await callTool('vault.x', {}).catch(() => {});
const { sum } = await fixture.add(JSON.parse('{"a": 1, "b": 1}')).catch((error) => ({ sum: String(error) }));
for (const name of names) delete Object.prototype[name];
[1, sum, [...new Set(taken)]];
