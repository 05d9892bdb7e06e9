// attack: a result that nests 300,000 levels deep
// outcome: error nested too deeply
// control: none: a result is the library's own
// limits: memory_mib = 512, timeout_seconds = 30
let result = 1;
for (let depth = 0; depth < 3e5; depth++) result = [result];
result;
