// attack: WebAssembly, which would want executable memory
// outcome: error WebAssembly is not defined
// control: outside
new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
