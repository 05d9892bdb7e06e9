// attack: registries, weak maps and references that hold the last reference to each other, freed in every order
// outcome: ok "whole"
// control: outside
for (let round = 0; round < 300; round++) {
  let key = round % 2 ? Symbol(`key ${round}`) : { round };
  const map = new WeakMap();
  let registry = new FinalizationRegistry(() => { map.set({}, registry); });
  const steps = [() => registry.register(key, 1), () => map.set(key, registry), () => map.set(key, { registry, map, key }), () => registry.register(key, new WeakRef(key), key), () => round % 2 || map.set(registry, new WeakRef(key)), () => registry.register(registry, registry.valueOf === 0), () => registry.unregister(key)];
  for (let at = 0; at < steps.length; at++) {
    try {
      steps[(at * (1 + (round % 6)) + round) % steps.length]();
    } catch {}
  }
  registry = null;
  key = null;
}
await new Promise((done) => setTimeout(done, 5));
const churn = Array.from({ length: 1000 }, (_, at) => ({ at, more: [at] }));
churn.every(({ at, more }) => at === more[0]) ? 'whole' : 'broken';
