// attack: the wrapper's own variable, by which the engine places an error, is set to what is no position
// outcome: error awaits something that never happens
// control: none: a way into this library only
await 0;
const never = new Promise(() => {});
for (const odd of [NaN, Infinity, 4294967295, -1, 1e308, 10n, Symbol(), { valueOf() { for (;;); } }]) {
  eval('$lockhouse_' + 'awaiting = odd');
}
await Promise.race([never, (eval('$lockhouse_' + 'awaiting = 4294967295'), never)]);
