// attack: views whose length, offset and buffer are getters, where the library reads bytes by them
// outcome: ok []
// control: none: a way into this library only
const foreign = [];
const lying = (view) => {
  let reads = 0;
  for (const [key, value] of [['byteLength', () => 1e6 * reads++], ['byteOffset', () => 1e6], ['length', () => 2 ** 31], ['buffer', () => new ArrayBuffer(8)]]) Object.defineProperty(view, key, { get: value });
  return view;
};
for (const Kind of [Uint8Array, Float64Array, DataView]) {
  const make = () => lying(new Kind(new ArrayBuffer(16)));
  for (const attempt of [() => crypto.getRandomValues(make()) && 0, () => new TextDecoder().decode(make()), () => structuredClone(make()), () => console.log(make())]) {
    try {
      const got = attempt();
      if (typeof got === 'string' && !/^[\0]*$/.test(got)) foreign.push(got.slice(0, 40));
    } catch {}
  }
  try {
    const { value } = await fixture.echo({ value: make() });
    if (/[^A=]/.test(value.base64 ?? '')) foreign.push(value.base64);
  } catch {}
}
foreign;
