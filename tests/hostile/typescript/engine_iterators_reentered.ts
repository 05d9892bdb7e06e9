// attack: iterators, helpers and generators that are entered again, or ended, from within themselves
// outcome: ok "whole"
// control: outside
const makers = [
  (source) => Iterator.concat(source), (source) => Iterator.concat(source, source, [1]), (source) => Iterator.from(source).map((x) => x), (source) => Iterator.from(source).flatMap(() => source),
  (source) => Iterator.from(source).filter(() => true).take(5), (source) => Iterator.from(source).drop(1), (source) => (function* () { yield* source; })(),
];
for (const make of makers) {
  for (const again of ['next', 'return', 'throw']) {
    for (const where of ['iterator', 'next', 'done', 'value', 'return', 'getNext']) {
      let it;
      const hit = (here) => {
        if (here !== where) return;
        try {
          it?.[again]?.({});
        } catch {}
      };
      const inner = { get next() { hit('getNext'); return () => (hit('next'), { get done() { hit('done'); return false; }, get value() { hit('value'); return [{}]; } }); }, return: () => (hit('return'), {}), [Symbol.iterator]: () => (hit('iterator'), inner) };
      try {
        it = make(inner);
        for (let round = 0; round < 4; round++) it.next({});
        it.return?.({});
        it.next();
      } catch {}
    }
  }
}
'whole';
