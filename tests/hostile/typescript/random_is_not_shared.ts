// attack: Math.random that starts alike in each worker, or that a zygote has drawn from already
// outcome: ok true
// control: outside
const drawn = Array.from({ length: 10000 }, () => Math.random());
const first = new Set(drawn);
const bytes = crypto.getRandomValues(new Uint8Array(65536));
const counts = new Map();
for (const byte of bytes) counts.set(byte, (counts.get(byte) ?? 0) + 1);
first.size > 9990 && drawn.every((x) => x >= 0 && x < 1) && counts.size === 256 && crypto.randomUUID() !== crypto.randomUUID();
