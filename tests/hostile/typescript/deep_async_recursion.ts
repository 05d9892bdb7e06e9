// attack: an asynchronous function that awaits itself a million times over
// outcome: error Maximum call stack size exceeded
// control: none: others have other words
// endurance: ends by its deadline
const descend = async (depth) => (depth ? await descend(depth - 1) : 0);
await descend(1e6);
