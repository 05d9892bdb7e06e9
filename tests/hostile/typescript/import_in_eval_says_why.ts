// attack: import in evaluated code is refused in the same words
// outcome: error not available in the Lockhouse sandbox
// control: outside
await eval("import('node:fs')");
