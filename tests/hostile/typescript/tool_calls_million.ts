// attack: a million tool calls
// outcome: limit tool call limit
// control: none: a way into this library only
// limits: memory_mib = 512, timeout_seconds = 30
// endurance: ends by its deadline
for (let round = 0; round < 1000; round++) await Promise.all(Array.from({ length: 1000 }, () => fixture.add({ a: 1, b: 2 })));
