// attack: DataView, crypto and the text coders on a buffer that goes away while its arguments become numbers
// outcome: ok "whole"
// control: outside
const foreign = [];
for (const kind of ['Int8', 'Int16', 'Int32', 'BigInt64', 'Float32', 'Float64', 'BigUint64', 'Uint32']) {
  for (const change of [(buffer) => buffer.resize(0), (buffer) => buffer.transfer(), (buffer) => buffer.resize(60000)]) {
    const buffer = new ArrayBuffer(1024, { maxByteLength: 65536 });
    const view = new DataView(buffer, 8);
    const big = kind.startsWith('Big');
    const hit = (value) => ({ valueOf: () => (buffer.detached || change(buffer), value) });
    for (const attempt of [() => view[`get${kind}`](hit(1000)), () => view[`set${kind}`](hit(1000), hit(big ? 0n : 0)), () => view.byteLength, () => new DataView(buffer, hit(8), hit(9000))]) {
      try {
        const value = attempt();
        if (typeof value === 'bigint' ? value !== 0n : typeof value === 'number' && value > 60000) foreign.push(String(value));
      } catch {}
    }
    for (const attempt of [() => new TextDecoder().decode(view), () => new TextDecoder().decode(new Uint8Array(buffer)), () => crypto.getRandomValues(new Uint8Array(buffer))]) {
      try {
        const text = attempt();
        if (typeof text === 'string' && /[^\0]/.test(text)) foreign.push(text);
      } catch {}
    }
  }
}
foreign.length ? foreign : 'whole';
