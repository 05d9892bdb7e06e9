// attack: call a tool that the policy denies, by each way there is
// outcome: ok ["denied","unknown_tool"]
// control: none: a way into this library only
const ways = [
  () => fixture.delete_everything({}), () => mcp.fixture.delete_everything(), () => callTool('fixture.delete_everything', {}),
  () => callTool('fixture', 'delete_everything', {}), () => callMCPTool('mcp__fixture__delete_everything', {}), () => fixture.deleteEverything({}),
  () => fixture['delete-everything']({}), () => callTool('fixture/DELETE_EVERYTHING', {}), () => mcp_tools.Fixture.delete_everything({}),
  () => import('mcp_tools/fixture').then((it) => it.delete_everything({})), () => Reflect.get(fixture, 'delete_everything')(),
];
const codes = new Set();
for (const way of ways) {
  try {
    codes.add(`done: ${JSON.stringify(await way())}`);
  } catch (error) {
    codes.add(error.code);
  }
}
[...codes].sort();
