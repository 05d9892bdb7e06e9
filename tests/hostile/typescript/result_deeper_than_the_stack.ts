// attack: a result that nests a million levels deep
// outcome: error nested too deeply
// control: none: a result is the library's own
let result = 1;
for (let depth = 0; depth < 1e6; depth++) result = [result];
result;
