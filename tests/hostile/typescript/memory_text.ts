// attack: texts that double, are repeated and padded
// outcome: ok ["RangeError","RangeError",true]
// control: outside
// limits: memory_mib = 512, timeout_seconds = 30
const ways = [() => 'x'.repeat(2 ** 30), () => 'x'.padEnd(2 ** 31), () => { for (let text = 'x'; ; text += text); }];
const names = [];
for (const way of ways) {
  try {
    names.push(way().length);
  } catch (error) {
    names.push(error.name);
  }
}
[names[0], names[1], ['RangeError', 'InternalError'].includes(names[2])];
