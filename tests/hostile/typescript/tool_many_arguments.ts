// attack: 200,000 values in the arguments of one call
// outcome: error values
// control: none: a way into this library only
// limits: memory_mib = 512, timeout_seconds = 30
await fixture.echo({ value: Array(2e5).fill(0) });
