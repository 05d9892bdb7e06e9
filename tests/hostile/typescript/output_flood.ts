// attack: ten gigabytes on the console
// outcome: limit output
// control: none: nothing would end it outside
// limits: memory_mib = 512, timeout_seconds = 30
// endurance: ends by its deadline
const line = 'x'.repeat(1e6);
for (let count = 0; count < 1e4; count++) console.log(line);
