// attack: connect to a live unix socket
// outcome: error not available in the Lockhouse sandbox
// control: outside
const net = await import('net');
await new Promise((done, fail) => {
  const socket = net.connect('{DIR}/socket', () => done(socket.destroy()));
  socket.on('error', fail);
});
