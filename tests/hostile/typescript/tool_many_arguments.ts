// attack: a million values in the arguments of one call
// outcome: error values
// control: none: a way into this library only
await fixture.echo({ value: Array(1e6).fill(0) });
