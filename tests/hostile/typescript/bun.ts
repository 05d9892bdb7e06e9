// attack: Bun's globals
// outcome: error Bun is not defined
// control: none: Bun is not needed for the tests
await Bun.file('{DIR}/file').text();
