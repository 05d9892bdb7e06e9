// attack: arguments of 20 MB
// outcome: error too large
// control: none: a way into this library only
// limits: memory_mib = 512, timeout_seconds = 30
await fixture.text({ text: 'x'.repeat(2e7) });
