// attack: queueMicrotask and a thenable that resolves to another, for ever
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 2, memory_mib = 64
const endless = () => ({ then: (done) => queueMicrotask(() => done(endless())) });
await endless();
