// attack: an interval of nothing that never ends, whose callback does not stop
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
setInterval(() => { for (const end = Date.now() + 50; Date.now() < end; ); }, 0);
await new Promise(() => {});
