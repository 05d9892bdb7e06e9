// attack: a hundred thousand promises, each resolved with the one before
// outcome: ok 1
// control: none: how much memory it takes is the engine's
// limits: memory_mib = 512, timeout_seconds = 30
let last = Promise.resolve(1);
for (let depth = 0; depth < 5e4; depth++) {
  const before = last;
  last = new Promise((done) => done(before));
}
for (let depth = 0; depth < 5e4; depth++) last = last.then((value) => value);
await last;
