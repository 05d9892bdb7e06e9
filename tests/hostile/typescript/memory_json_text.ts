// attack: a result that is small as an object and 2^40 bytes as JSON
// outcome: limit|killed memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
let result = ['x'.repeat(10000)];
for (let depth = 0; depth < 40; depth++) result = [result, result];
result;
