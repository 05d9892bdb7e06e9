// attack: all memory in typed arrays
// outcome: limit memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
// endurance: ends by its deadline
const held = [];
for (;;) held.push(new Uint8Array(1 << 20));
