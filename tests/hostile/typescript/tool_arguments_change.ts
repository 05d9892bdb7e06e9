// attack: arguments with getters, proxies and toJSON that are different whenever they are read
// outcome: ok {"value":{"a":1}}
// control: none: a way into this library only
let reads = 0;
const changing = { get a() { return ++reads; } };
const first = await fixture.echo({ value: changing });
if (reads !== 1) throw new Error(`read ${reads} times`);
let turns = 0;
const turning = new Proxy({}, { ownKeys: () => (turns++ ? ['server', 'tool'] : ['value']), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: (_, key) => (key === 'toJSON' ? undefined : 'x') });
const second = await fixture.echo(turning);
if (second.value !== 'x') throw new Error(JSON.stringify(second));
first;
