// attack: the longest number as decimal text and back
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
const number = (1n << 1000000n) - 1n;
for (;;) BigInt(number.toString(10).slice(1));
