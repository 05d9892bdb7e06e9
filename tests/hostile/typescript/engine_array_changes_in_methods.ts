// attack: arrays that shrink, become sparse or get getters in the middle of each of their methods
// outcome: ok "whole"
// control: outside
const changes = [(array) => (array.length = 0), (array) => (array.length = 3), (array) => Object.defineProperty(array, 5, { get: () => (array.length = 1), configurable: true }), (array) => array.push(...Array(1000).fill(7)), (array) => Object.setPrototypeOf(array, { __proto__: Array.prototype, get 60() { array.length = 0; return 8; } }), (array) => delete array[50]];
const foreign = [];
for (const change of changes) {
  const tries = [
    (array, hit) => array.splice(hit(1), hit(90), ...array), (array, hit) => array.slice(hit(0), hit(100)), (array, hit) => array.fill(1, hit(0), hit(100)), (array, hit) => array.copyWithin(hit(0), hit(50), hit(100)), (array, hit) => array.indexOf(-5, hit(0)),
    (array, hit) => array.includes(-5, hit(0)), (array, hit) => array.lastIndexOf(-5, hit(99)), (array, hit) => array.sort((a, b) => (hit()?.valueOf(), b - a)), (array, hit) => array.toSorted(() => (hit()?.valueOf(), 1)), (array, hit) => array.toSpliced(hit(1), hit(50), 1), (array, hit) => array.with(hit(99), 1),
    (array, hit) => array.concat({ [Symbol.isConcatSpreadable]: true, get length() { return hit(5).valueOf(); } }, array), (array, hit) => array.flat({ valueOf: () => hit(2).valueOf() }), (array, hit) => array.flatMap((value) => (hit().valueOf(), [value, value])), (array, hit) => array.join({ toString: () => (hit().valueOf(), ',') }).length && 0,
    (array, hit) => array.map((value) => (hit().valueOf(), value)), (array, hit) => array.filter(() => (hit().valueOf(), true)), (array, hit) => array.reduceRight((all, value) => (hit().valueOf(), value)), (array, hit) => array.forEach(() => hit().valueOf()), (array, hit) => array.unshift(hit(1).valueOf()) && 0, (array, hit) => Math.max(...array, { valueOf: () => hit(0).valueOf() }),
    (array, hit) => { for (const value of array) hit().valueOf(); }, (array, hit) => { const [a, b, ...rest] = array; hit().valueOf(); return rest; }, (array, hit) => Array.from(array, (value) => (hit().valueOf(), value)), (array, hit) => { array.constructor = { [Symbol.species]: function () { hit().valueOf(); return array; } }; return array.slice(1); },
    (array, hit) => ((...values) => (hit().valueOf(), values))(...array), (array, hit) => { array.length = { valueOf: () => (hit().valueOf(), 50) }; }, (array, hit) => JSON.stringify(array.map((value, at) => (at === 4 ? { toJSON: () => (hit().valueOf(), 1) } : value))).length && 0, (array, hit) => Function.prototype.apply.call(Math.max, null, new Proxy(array, { get: (it, key) => (hit().valueOf(), it[key]) })),
    (array, hit) => array.toString.call({ join: () => hit(0).valueOf() }), (array, hit) => Object.groupBy(array, (value) => (hit().valueOf(), value)) && 0, (array, hit) => String.fromCharCode.apply(null, array.map((value, at) => (at === 9 ? { valueOf: () => hit(9).valueOf() } : value))).length && 0,
  ];
  for (const attempt of tries) {
    const array = Array.from({ length: 100 }, (_, at) => at);
    let done = false;
    const hit = (value = 0) => ({ valueOf() { if (!done) { done = true; change(array); } return value; } });
    let got;
    try {
      got = attempt(array, hit);
    } catch {}
    const spam = Array.from({ length: 50 }, () => ({ a: 1.5 }));
    for (const value of Array.isArray(got) ? got.flat() : [got]) if (value !== undefined && !(Number.isInteger(value) && value < 1200 && value > -2) && value !== -Infinity && typeof value !== 'object' && !Number.isNaN(value) && typeof value !== 'boolean') foreign.push(String(value));
    if (spam.some((object) => object.a !== 1.5)) foreign.push('spam');
  }
}
foreign.length ? foreign : 'whole';
