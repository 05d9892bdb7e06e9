// attack: a stack that names positions outside of the program, thousands of them
// outcome: error forged
// control: none: every throw fails
const error = new Error('forged');
error.stack = ['code.ts:0:0', 'code.ts:4294967295:4294967295', 'code.ts:99999999999:1', 'code.ts:-1:-1', 'lockhouse:code:0:0', 'lockhouse:code:4294967295:4294967295', 'lockhouse:code:2:4294967295', '/etc/passwd:1:1', ':::', 'é:1:1']
  .map((place) => `    at 😀 (${place})`).join('\n').repeat(1000);
throw error;
