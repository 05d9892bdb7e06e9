// attack: send a datagram to a live UDP port
// outcome: error not available in the Lockhouse sandbox
// control: outside
const dgram = await import('node:dgram');
const socket = dgram.createSocket('udp4');
await new Promise((done, fail) => socket.send('x', {UDP}, '127.0.0.1', (error) => (error ? fail(error) : done())));
socket.close();
