// attack: JSON that nests a million levels, parsed, revived and written
// outcome: ok ["RangeError","RangeError","RangeError"]
// control: none: others have other stacks
const names = [];
let deep = [];
for (let depth = 0; depth < 1e6; depth++) deep = [deep];
const endless = { toJSON: () => JSON.stringify(endless) };
for (const way of [() => JSON.parse('['.repeat(1e6)), () => JSON.stringify(deep), () => JSON.stringify(endless)]) {
  try {
    names.push(typeof way());
  } catch (error) {
    names.push(error.name);
  }
}
names;
