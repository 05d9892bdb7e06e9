// attack: a tool's result that would be taken for a promise, so that the text of a server is run
// outcome: ok {"then":"globalThis.taken = 1"}
// control: none: a way into this library only
const { value } = await fixture.echo({ value: { then: 'globalThis.taken = 1' } });
await value;
if ('taken' in globalThis) throw new Error('it ran');
value;
