// attack: a million timers at once, cancelled in the worst order
// outcome: timeout did not end within
// control: none: how long it takes is the machine's
// limits: memory_mib = 512, timeout_seconds = 2
const ids = Array.from({ length: 1e6 }, (_, at) => setTimeout(() => {}, 1e6 - at));
for (const id of ids.reverse()) clearTimeout(id);
