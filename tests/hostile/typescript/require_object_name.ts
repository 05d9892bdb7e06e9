// attack: a name that changes between the check and the use
// outcome: error not available in the Lockhouse sandbox
// control: none: a way into this library only
let reads = 0;
const name = { toString: () => (reads++ ? 'net' : 'mcp_tools') };
require(name);
require(name);
