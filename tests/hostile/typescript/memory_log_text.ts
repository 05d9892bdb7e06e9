// attack: printing an object that is small, and endless as text
// outcome: limit memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
let wide = ['x'.repeat(9000)];
for (let depth = 0; depth < 4; depth++) wide = Array(100).fill(wide);
console.log(wide);
