// attack: patched built-ins never answer while the engine asks what the program waited for
// outcome: timeout did not end within
// control: none: a way into this library only
// limits: timeout_seconds = 1
// endurance: ends at its deadline
const never = fixture.slow({ ms: 60000 });
const forever = () => { for (;;); };
Map.prototype.values = Map.prototype[Symbol.iterator] = Array.prototype[Symbol.iterator] = forever;
Object.getPrototypeOf(new Map().keys()).next = forever;
await never;
