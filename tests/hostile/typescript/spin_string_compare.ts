// attack: quadratic work in one call: replaceAll, split and join of texts that repeat
// outcome: limit memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
const text = 'ab'.repeat(1e6);
for (;;) text.replaceAll('ab', () => 'ba').split('').join('ab'.repeat(50)).lastIndexOf('ab'.repeat(1000) + 'c');
