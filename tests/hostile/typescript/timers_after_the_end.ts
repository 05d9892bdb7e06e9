// attack: timers that fire when the result is there
// outcome: ok "done"
// control: none: Node.js waits for them
setTimeout(() => { throw new Error('after the end'); }, 0);
setInterval(() => { throw new Error('after the end'); }, 1);
setImmediate(() => { throw new Error('after the end'); });
'done';
