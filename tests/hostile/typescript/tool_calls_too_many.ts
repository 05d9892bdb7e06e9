// attack: more tool calls at once than may wait for their turn
// outcome: error too many calls wait
// control: none: a way into this library only
await Promise.race(Array.from({ length: 20000 }, () => fixture.slow({ ms: 60000 })));
