// attack: import code from a data: URL, past the transformer
// outcome: error not available in the Lockhouse sandbox
// control: outside
await import('data:text/javascript,export default 1');
