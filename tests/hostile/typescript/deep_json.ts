// attack: JSON that nests 300,000 levels, parsed, revived and written
// outcome: ok ["RangeError","RangeError","RangeError"]
// control: none: others have other stacks
// limits: memory_mib = 512, timeout_seconds = 30
const names = [];
let deep = [];
for (let depth = 0; depth < 3e5; depth++) deep = [deep];
const endless = { toJSON: () => JSON.stringify(endless) };
for (const way of [() => JSON.parse('['.repeat(3e5)), () => JSON.stringify(deep), () => JSON.stringify(endless)]) {
  try {
    names.push(typeof way());
  } catch (error) {
    names.push(error.name);
  }
}
names;
