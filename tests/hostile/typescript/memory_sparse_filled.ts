// attack: filling an array of 2^32 elements, and turning it into text
// outcome: limit memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
const all = new Array(2 ** 32 - 1);
try {
  all.fill(1);
} catch {}
all.join('xxxxxxxxxxxxxxxx');
