// attack: everything that is refused is caught, and the program goes on
// outcome: ok 8
// control: none: a way into this library only
let caught = 0;
const ways = [() => require('net'), () => import('node:net'), () => fetch('http://127.0.0.1:{TCP}'), () => new WebSocket('ws://127.0.0.1:{TCP}'), () => process.exit(0), () => new WebAssembly.Module(new Uint8Array(8)), () => std.loadFile('{DIR}/file'), () => callTool('fixture', 'delete_everything', {})];
for (const way of ways) {
  try {
    await way();
  } catch (error) {
    caught += error instanceof Error ? 1 : 0;
  }
}
caught;
