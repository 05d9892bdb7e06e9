// attack: read a file with node:fs through a static import
// outcome: error not available in the Lockhouse sandbox
// control: outside
import { readFileSync } from 'node:fs';
readFileSync('{DIR}/file', 'utf8');
