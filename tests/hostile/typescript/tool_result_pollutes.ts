// attack: results of tools whose keys are __proto__, constructor, then, toJSON and length
// outcome: ok [null,null,"object",3]
// control: none: a way into this library only
const bait = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}, "then": 1, "toJSON": 2, "length": 1e9}');
const { value } = await fixture.echo({ value: bait });
const text = (await fixture.text({ text: '{"__proto__": {"polluted": 1}}' })).json();
const shown = structuredClone(value);
console.log(value, text, shown);
Object.assign({}, value);
[{}.polluted ?? null, [].polluted ?? null, typeof value, (await fixture.add({ a: 1, b: 2 })).sum];
