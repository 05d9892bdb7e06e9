// attack: tell a live port a secret, by each thing browsers have for it
// outcome: ok ["fetch","XMLHttpRequest","WebSocket","EventSource"]
// control: none: the port speaks neither HTTP nor WebSocket
const refused = [];
for (const name of ['fetch', 'XMLHttpRequest', 'WebSocket', 'EventSource']) {
  try {
    const address = 'http://127.0.0.1:{TCP}/{SECRET}';
    await (name === 'fetch' ? fetch(address) : new globalThis[name](address));
  } catch (error) {
    if (error.message.includes('not available in the Lockhouse sandbox')) refused.push(name);
  }
}
refused;
