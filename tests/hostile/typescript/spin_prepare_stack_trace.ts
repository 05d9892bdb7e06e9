// attack: what formats stacks for the library never answers
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
Error.prepareStackTrace = () => { for (;;); };
await fixture.add({ a: 1, b: 2 });
