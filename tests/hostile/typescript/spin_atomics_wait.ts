// attack: sleep in Atomics.wait, which no interrupt wakes
// outcome: error cannot block
// control: none: others may block
Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0);
