// attack: tool calls for ever, none of them awaited
// outcome: limit|killed memory
// control: none: a way into this library only
// limits: memory_mib = 64, timeout_seconds = 60
for (;;) fixture.slow({ ms: 60000 });
