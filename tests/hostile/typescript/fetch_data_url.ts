// attack: fetch
// outcome: error not available in the Lockhouse sandbox
// control: outside
await (await fetch('data:text/plain,hello')).text();
