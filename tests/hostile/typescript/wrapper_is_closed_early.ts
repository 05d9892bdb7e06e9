// attack: source that ends the function around it and goes on outside
// outcome: error Unexpected token
// control: none: a way into this library only
1;
}, () => 0]);
globalThis.outside = 1;
(() => [async () => {
