// attack: tool calls with large arguments, whose texts would wait outside the memory of the program
// outcome: error too many calls wait
// control: none: a way into this library only
// limits: memory_mib = 64, timeout_seconds = 60
const text = 'x'.repeat(1e6);
await Promise.race(Array.from({ length: 200 }, () => fixture.slow({ ms: 60000, text })));
