// attack: a result that nests deeper than readers follow
// outcome: error nested too deeply
// control: none: a result is the library's own
let result = 1;
for (let depth = 0; depth < 200; depth++) result = { result };
result;
