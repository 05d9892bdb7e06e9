// attack: maps and sets that are emptied and refilled while they are walked, compared and grouped
// outcome: ok "whole"
// control: outside
const sets = ['union', 'intersection', 'difference', 'symmetricDifference', 'isSubsetOf', 'isSupersetOf', 'isDisjointFrom'];
for (let round = 0; round < 20; round++) {
  const map = new Map(Array.from({ length: 50 }, (_, at) => [{ at }, { at }]));
  map.forEach((_, key) => { map.delete(key); if (key.at < 40) map.set({ at: 50 }, 1); if (round % 3 === 0) map.clear(); });
  const held = [map.keys(), map.entries(), map.values()];
  map.clear();
  for (const one of held) one.next();
  for (const name of sets) {
    const set = new Set(Array.from({ length: 50 }, (_, at) => `a text ${at} of ${round}`));
    let left = 20;
    const clear = (value) => (left-- > 0 && (set.clear(), set.add(`new ${left}`)), value);
    try {
      set[name]?.({ get size() { return clear(40 + round); }, has: () => clear(round % 2 === 0), keys: () => ({ get next() { clear(); let more = 9; return () => ({ done: more-- < 0, value: clear(`a text ${more}`) }); }, return: () => clear({}) }) });
    } catch {}
  }
  Map.groupBy?.(new Map([[1, 2], [3, 4]]), (entry) => { entry.length = 0; return entry; });
  const walked = new Map([[1, 1]]);
  let steps = 0;
  for (const [key] of walked) {
    walked.delete(key);
    if (steps++ < 1000) walked.set(key + 1, { key });
  }
}
'whole';
