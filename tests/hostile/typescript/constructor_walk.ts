// attack: code made through the constructors of ordinary values, which in a vm reaches the host's process
// outcome: ok []
// control: outside
const values = [[], {}, () => {}, async () => {}, function* () {}, async function* () {}, class {}, 1, 'x', /x/, new Map(), new Error(), Symbol(), 1n];
const got = [];
for (const value of values) {
  for (const path of [(v) => v.constructor.constructor, (v) => v.constructor, (v) => Object.getPrototypeOf(v).constructor]) {
    try {
      const Maker = path(value);
      const found = await new Maker("return typeof process === 'object' ? process.pid : undefined")();
      if (typeof found === 'number') got.push(found);
    } catch {}
  }
}
if (typeof process === 'object' && got.length < 10) throw new Error('the control found nothing');
got;
