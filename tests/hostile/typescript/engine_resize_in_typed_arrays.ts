// attack: typed arrays whose buffer shrinks, grows or goes away in the middle of each of their methods
// outcome: ok "whole"
// control: outside
// limits: memory_mib = 512, timeout_seconds = 30
const foreign = [];
const changes = [(buffer) => buffer.resize(0), (buffer) => buffer.resize(16), (buffer) => buffer.resize(65536), (buffer) => buffer.transfer(8), (buffer) => buffer.transferToFixedLength()];
for (const Kind of [Uint8Array, Int16Array, Float64Array, BigInt64Array]) {
  const one = Kind === BigInt64Array ? 1n : 1;
  for (const change of changes) {
    const tries = {
      with: (view, hit) => view.with(hit(3), hit(one)), fill: (view, hit) => view.fill(hit(one), hit(0), hit(200)), at: (view, hit) => view.at(hit(100)),
      set: (view, hit) => view.set([hit(one), one, one], hit(90)), setSelf: (view, hit) => view.set(view.subarray(0, 9), hit(80)), copyWithin: (view, hit) => view.copyWithin(hit(0), hit(50), hit(100)),
      slice: (view, hit) => view.slice(hit(0), hit(100)), subarray: (view, hit) => view.subarray(hit(8), hit(100)).fill(one), indexOf: (view, hit) => view.indexOf(one, hit(2)), includes: (view, hit) => view.includes(undefined, hit(2)),
      lastIndexOf: (view, hit) => view.lastIndexOf(one, hit(100)), join: (view, hit) => view.join({ toString: () => (hit(), ',') }), sort: (view, hit) => view.sort((a, b) => (hit(), a < b ? 1 : -1)), toSorted: (view, hit) => view.toSorted(() => (hit(), -1)),
      map: (view, hit) => view.map((value) => (hit(), value)), filter: (view, hit) => view.filter(() => (hit(), true)), reduce: (view, hit) => view.reduce((sum, value) => (hit(), value)), reverse: (view, hit) => (hit(), view.reverse()), spread: (view, hit) => { for (const value of view) hit(value); },
      from: (view, hit) => Kind.from(view, (value) => (hit(), value)), construct: (view, hit) => Reflect.construct(Kind, [view], Object.defineProperty(function () {}.bind(), 'prototype', { get: () => (hit(), Kind.prototype) })),
      constructBuffer: (view, hit) => Reflect.construct(Kind, [view.buffer, 8, 4], Object.defineProperty(function () {}.bind(), 'prototype', { get: () => (hit(), Kind.prototype) })), offset: (view, hit) => new Kind(view.buffer, hit(8), hit(4)).fill(one),
      species: (view, hit) => { view.constructor = { [Symbol.species]: function (length) { hit(); return new Kind(length); } }; return view.slice(1); }, small: (view, hit) => { view.constructor = { [Symbol.species]: () => (hit(), new Kind(1)) }; return view.map((value) => value); },
      entries: (view, hit) => { const all = view.entries(); all.next(); hit(); return all.next(); }, define: (view, hit) => Object.defineProperty(view, 100, { value: { valueOf: () => hit(one) } }), write: (view, hit) => { view[100] = { valueOf: () => hit(one) }; },
    };
    for (const attempt of Object.values(tries)) {
      const buffer = new ArrayBuffer(1024, { maxByteLength: 65536 });
      const view = new Kind(buffer);
      let done = false;
      const hit = (value) => ({ valueOf() { if (!done) { done = true; change(buffer); } return value; } });
      const now = (value) => (value === undefined || typeof value === 'boolean' ? void hit(0).valueOf() : hit(value));
      let got;
      try {
        got = attempt(view, now);
      } catch {}
      try {
        got = ArrayBuffer.isView(got) ? [...got] : got;
      } catch {
        continue;
      }
      for (const value of Array.isArray(got) ? got.flat() : [got]) if (typeof value === typeof one && ![0n, 1n, 0, 1, -1].includes(value) && !(value < 129) && value === value) foreign.push(String(value));
    }
  }
}
foreign.length ? foreign : 'whole';
