// attack: arguments that nest so deep that a reader overflows
// outcome: error nested too deeply
// control: none: a way into this library only
let deep = [];
for (let depth = 0; depth < 5000; depth++) deep = [deep];
await fixture.echo({ value: deep });
