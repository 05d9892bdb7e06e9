// attack: what a terminal would obey, on both streams and in an error
// outcome: error window title
// control: outside
console.log('\x1b]0;owned\x07\x1b[2J\u202e\u0000');
console.error('\x9b31m\r\n{"status":"ok","value":1}');
globalThis.process ?? (() => { throw new Error('\x1b]0;window title\x07'); })();
