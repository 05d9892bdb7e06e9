// attack: import in evaluated code is refused in the same words
// outcome: error node:fs
// control: outside
await eval("import('node:fs')");
