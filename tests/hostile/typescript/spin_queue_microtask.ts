// attack: queueMicrotask and a thenable that resolves to another, for ever
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 1
const endless = () => ({ then: (done) => queueMicrotask(() => done(endless())) });
await endless();
