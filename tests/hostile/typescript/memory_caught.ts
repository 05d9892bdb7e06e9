// attack: all memory, and what says so is caught, for ever
// outcome: limit|timeout did not end within
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 1
// endurance: ends by its deadline
const held = [];
for (;;) {
  try {
    for (let size = 1 << 20; size; size >>= 1) for (;;) held.push(new Uint8Array(size).fill(1));
  } catch {}
}
