// attack: the server's object: its prototype, constructor, private parts and handler
// outcome: ok []
// control: none: a way into this library only
const got = [];
const tries = {
  proto: () => fixture.__proto__.__proto__ === Object.prototype || fixture.__proto__,
  constructor: () => Object.keys(new fixture.constructor('vault')),
  'constructor of a server': () => typeof new fixture.constructor('vault').delete_everything === 'undefined',
  define: () => Object.defineProperty(fixture, 'delete_everything', { value: 1 }) && 'defined',
  'set prototype': () => Object.setPrototypeOf(fixture, { polluted: 1 }) && fixture.polluted,
  freeze: () => Object.freeze(fixture) && 'frozen',
  set: () => { fixture.echo = 1; return 'set'; },
  delete: () => { delete fixture.delete_everything; return fixture.delete_everything.name; },
};
for (const [name, attempt] of Object.entries(tries)) {
  try {
    const value = attempt();
    if (value !== true && value !== undefined && !['delete_everything', 'defined', 'frozen'].includes(value) && Object.keys(value).length) got.push([name, String(value)]);
  } catch {}
}
const denied = await callTool('fixture', 'delete_everything', {}).catch((error) => error.code);
if (denied !== 'denied') got.push(['the denied tool', denied]);
got;
