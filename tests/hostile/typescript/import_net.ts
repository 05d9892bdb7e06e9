// attack: connect to a live TCP port
// outcome: error not available in the Lockhouse sandbox
// control: outside
import net from 'node:net';
await new Promise((done, fail) => {
  const socket = net.connect({TCP}, '127.0.0.1', () => done(socket.destroy()));
  socket.on('error', fail);
});
