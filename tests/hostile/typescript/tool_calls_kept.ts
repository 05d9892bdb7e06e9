// attack: questions about tools for ever, none of them awaited, all of them kept
// outcome: limit memory
// control: none: a way into this library only
// limits: memory_mib = 64, timeout_seconds = 60
const kept = [];
for (;;) kept.push(searchTools('a'));
