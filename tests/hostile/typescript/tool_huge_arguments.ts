// attack: arguments of 20 MB
// outcome: error too large
// control: none: a way into this library only
// limits: timeout_seconds = 10, memory_mib = 256
await fixture.text({ text: 'x'.repeat(2e7) });
