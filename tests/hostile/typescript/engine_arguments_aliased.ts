// attack: arguments of sloppy functions that are aliases, after their function is gone or its frame is used again
// outcome: ok "whole"
// control: outside
const make = new Function('a', 'b', `
  const held = arguments;
  const write = (value) => { a = value; arguments.length = 1e9; };
  b = { held };
  delete arguments[0];
  arguments[0] = 5;
  return [held, () => a, write, function* () { yield a; arguments[0] = 7; yield held; }];
`);
const kept = [];
for (let round = 0; round < 500; round++) {
  const [held, read, write, generator] = make({ round }, 2, 3);
  const it = generator();
  it.next();
  write([round]);
  kept.push([held, read, it, round]);
}
kept.every(([held, read, it, round]) => read()[0] === round && held[0] === 5 && it.next().value === held && Math.max.apply(null, { length: 2, 0: 1, 1: 2 }) === 2) ? 'whole' : 'broken';
