// attack: questions about tools for ever, which are no calls and could be free
// outcome: limit questions about tools
// control: none: a way into this library only
// endurance: ends by its deadline
for (;;) await Promise.all(Array.from({ length: 100 }, () => searchTools('echo')));
