// attack: timers that are an hour away
// outcome: limit|killed memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
// endurance: ends by its deadline
for (;;) setTimeout(() => {}, 3600000);
