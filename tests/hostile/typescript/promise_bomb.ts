// attack: a hundred thousand promises that all wait for each other, rejected at once
// outcome: error bomb
// control: none: Node.js ends with the first
// limits: memory_mib = 512, timeout_seconds = 30
const held = Array.from({ length: 1e5 }, (_, at) => Promise.reject(new Error(`bomb ${at}`)));
await new Promise((done) => setTimeout(done, 0));
held.length;
