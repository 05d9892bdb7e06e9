// attack: a failure after the result is there
// outcome: error late
// control: none: Node.js ends with an error as well
Promise.reject(new Error('late'));
'the result';
