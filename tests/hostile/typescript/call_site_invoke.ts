// attack: a stolen function of the library asks for a server that nobody has
// outcome: error vault
// control: none: its own, in the program: the function must be stolen
let invoke;
Error.prepareStackTrace = (_, sites) => (sites.forEach((site) => (invoke ??= site.getFunction()?.name === 'invoke' ? site.getFunction() : undefined)), '');
const thief = { toJSON() { new Error().stack; return {}; } };
await callTool('a.b', thief).catch(() => {});
if (typeof invoke !== 'function') throw new Error('the control stole nothing');
await invoke('vault', 'unlock', [{ all: true }]);
