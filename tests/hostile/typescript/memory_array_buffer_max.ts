// attack: a resizable buffer that is promised petabytes
// outcome: ok ["RangeError","RangeError"]
// control: none: others have other limits
const names = [];
for (const make of [() => new ArrayBuffer(8, { maxByteLength: 2 ** 50 }), () => new Uint8Array(2 ** 45)]) {
  try {
    names.push(make().byteLength);
  } catch (error) {
    names.push(error.name);
  }
}
names;
