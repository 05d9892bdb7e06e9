// attack: the way to modules that needs no import
// outcome: error process is not defined
// control: outside
process.getBuiltinModule('fs').readFileSync('{DIR}/file', 'utf8');
