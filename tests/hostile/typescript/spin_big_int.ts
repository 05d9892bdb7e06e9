// attack: arithmetic with the longest numbers there are, each step of which is long
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
let number = (1n << 400000n) - 1n;
for (;;) number = (number * number) % ((1n << 399999n) + 1n) | (1n << 399998n);
