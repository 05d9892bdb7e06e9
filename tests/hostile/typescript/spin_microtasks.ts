// attack: microtasks for ever, so that nothing from outside is ever heard
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
const again = () => Promise.resolve().then(again);
again();
await new Promise(() => {});
