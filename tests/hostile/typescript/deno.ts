// attack: Deno's globals
// outcome: error Deno is not defined
// control: none: Deno is not needed for the tests
Deno.readTextFileSync('{DIR}/file');
