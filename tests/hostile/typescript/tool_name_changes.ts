// attack: names that are an allowed tool when checked and a denied one when used
// outcome: ok []
// control: none: a way into this library only
const changing = (...forms) => ({ toString: () => (forms.length > 1 ? forms.shift() : forms[0]), length: 4, startsWith: () => true, slice: () => 'delete_everything' });
const got = [];
const ways = [
  () => callTool(changing('fixture.echo', 'fixture.delete_everything'), { value: 1 }),
  () => callTool(changing('fixture', 'fixture'), 'delete_everything', {}),
  () => callTool('fixture', changing('echo', 'delete_everything'), { value: 1 }),
  () => fixture[changing('echo', 'delete_everything')]({ value: 1 }),
  () => mcp[changing('fixture', 'vault')].delete_everything({}),
];
for (const way of ways) {
  try {
    const answer = await way();
    if (JSON.stringify(answer) !== '{"value":1}') got.push(answer);
  } catch {}
}
got;
