// attack: promises that nobody settles
// outcome: limit|killed memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
// endurance: ends by its deadline
const held = [];
for (;;) held.push(new Promise(() => {}).then(() => {}));
