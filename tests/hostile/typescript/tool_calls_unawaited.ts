// attack: tool calls for ever, none of them awaited
// outcome: limit|killed memory
// control: none: a way into this library only
// limits: timeout_seconds = 20, memory_mib = 64
for (;;) fixture.slow({ ms: 60000 });
