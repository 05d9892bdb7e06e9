// attack: tool calls for ever, none of them awaited
// outcome: timeout did not end within
// control: none: a way into this library only
// limits: memory_mib = 64, timeout_seconds = 1
// endurance: ends by its deadline
for (;;) fixture.slow({ ms: 60000 });
