// attack: Node's raw bindings
// outcome: error process is not defined
// control: outside
process.binding('fs').internalModuleStat.name;
