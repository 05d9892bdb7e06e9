// attack: read a file with require
// outcome: error not available in the Lockhouse sandbox
// control: outside
const outside = globalThis.process?.getBuiltinModule('node:module').createRequire('{DIR}/file');
const load = outside ?? require;
load('fs').readFileSync('{DIR}/file', 'utf8');
