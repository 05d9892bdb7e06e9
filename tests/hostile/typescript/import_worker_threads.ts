// attack: leave the thread for one that is not watched
// outcome: error not available in the Lockhouse sandbox
// control: outside
const { Worker } = await import('node:worker_threads');
await new Promise((done, fail) => new Worker('0', { eval: true }).on('exit', done).on('error', fail));
