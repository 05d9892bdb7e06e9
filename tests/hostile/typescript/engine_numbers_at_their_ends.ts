// attack: indices, lengths and counts at the ends of every integer that an engine could hold them in
// outcome: ok []
// control: outside
const ends = [-0, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32 - 2, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 2 ** 63, -(2 ** 63), 2 ** 64, Infinity, -Infinity, NaN, 1e308];
const foreign = [];
const bytes = new Uint8Array(16).fill(7);
for (const a of ends) {
  for (const b of ends) {
    const tries = [
      () => 'abcdef'.slice(a, b), () => 'abcdef'.substring(a, b), () => 'abcdef'.substr(a, b), () => 'abcdef'.at(a), () => 'abcdef'.charCodeAt(a), () => 'abcdef'.codePointAt(a), () => 'abcdef'.indexOf('f', a), () => 'abcdef'.lastIndexOf('a', a),
      () => [1, 2, 3].slice(a, b).length, () => [1, 2, 3].splice(a, b).length, () => [1, 2, 3].at(a), () => [1, 2, 3].indexOf(3, a), () => [1, 2, 3].copyWithin(a, b)[0], () => [1, 2, 3].fill(3, a, b)[0], () => [1, 2, 3].toSpliced(a, b).length,
      () => bytes.subarray(a, b).length, () => bytes.slice(a, b).length, () => bytes.at(a), () => bytes[a], () => bytes.copyWithin(a, b, a)[0], () => bytes.fill(7, a, b)[0], () => bytes.indexOf(7, a), () => bytes.buffer.slice(a, b).byteLength, () => new Uint8Array(bytes.buffer, a, b).length,
      () => new DataView(bytes.buffer).getUint8(a), () => new DataView(bytes.buffer, a, b).byteLength, () => new DataView(bytes.buffer).getFloat64(a), () => BigInt.asIntN(a, 5n) < 6n && 0, () => BigInt.asUintN(a, 5n) < 6n && 0, () => (5).toFixed(a).length, () => (5).toPrecision(a).length, () => (5).toString(a), () => parseInt('11', a), () => String.fromCharCode(a, b).length, () => String.fromCodePoint(a).length,
      () => Atomics.load(new Int32Array(4), a), () => Array.prototype.slice.call({ length: a, 0: 1 }, b, b).length, () => Array.prototype.at.call({ length: a }, b) ?? 0, () => 1 << a, () => Math.imul(a, b), () => Math.clz32(a), () => Math.fround(a) ? 0 : 0, () => new Date(a, b).getTime() ? 0 : 0,
    ];
    for (const attempt of tries) {
      try {
        const got = attempt();
        if (typeof got === 'string' ? !'abcdef'.includes(got) && !/^[0-9a-z.+-]*$/.test(got) : typeof got === 'number' && Math.abs(got) > 255 && attempt !== tries.at(-6) && !String(attempt).includes('1 << a') && !String(attempt).includes('imul') && !String(attempt).includes('Float64') && !String(attempt).includes('parseInt')) foreign.push([String(attempt), a, b, got]);
      } catch (error) {
        if (!(error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError)) foreign.push([String(attempt), String(error)]);
      }
    }
  }
}
foreign.slice(0, 3);
