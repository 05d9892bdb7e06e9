// attack: Atomics on a buffer that is resized while the operand becomes a number
// outcome: ok "whole"
// control: outside
const held = [];
for (const name of ['add', 'sub', 'and', 'or', 'xor', 'exchange', 'store', 'compareExchange']) {
  for (const size of [0, 8, 4096]) {
    const buffer = new ArrayBuffer(1024, { maxByteLength: 65536 });
    const view = new Int32Array(buffer);
    const shrinking = { valueOf: () => (buffer.resize(size), held.push(new Uint8Array(1024).fill(0x41)), 123) };
    try {
      Atomics[name](view, 200, shrinking, shrinking);
    } catch {}
    try {
      Atomics[name](view, shrinking, 1, 1);
    } catch {}
  }
}
held.every((bytes) => bytes.every((byte) => byte === 0x41)) ? 'whole' : 'written through';
