// attack: throw an error with a name, a message, a stack and a code of megabytes each
// outcome: error xxxxxxxxxxxxxxxx
// control: none: every throw fails
const huge = 'x'.repeat(5e6);
const error = new Error(huge);
Object.assign(error, { name: huge, code: huge, stack: `    at ${huge} (code.ts:1:1)\n`.repeat(3) });
throw error;
