// attack: read a file with node:fs through a dynamic import whose name is made at run time
// outcome: error not available in the Lockhouse sandbox
// control: outside
const name = ['node', 'fs/promises'].join(':');
const fs = await import(name);
await fs.readFile('{DIR}/file', 'utf8');
