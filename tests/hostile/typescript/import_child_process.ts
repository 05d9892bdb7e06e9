// attack: start a shell
// outcome: error not available in the Lockhouse sandbox
// control: outside
const { execSync } = await import('node:child_process');
execSync('id').toString();
