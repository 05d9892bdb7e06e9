// attack: write a file, rename one and remove one
// outcome: error not available in the Lockhouse sandbox
// control: outside
import * as fs from 'fs';
fs.writeFileSync('{DIR}/written', 'x');
fs.renameSync('{DIR}/written', '{DIR}/moved');
fs.rmSync('{DIR}/moved');
