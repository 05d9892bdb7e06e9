// attack: servers and tools whose names would mean something to a file system, a shell, a log or a table
// outcome: ok []
// control: none: a way into this library only
// limits: memory_mib = 512, timeout_seconds = 30
const names = ['__proto__', 'constructor', 'hasOwnProperty', '../fixture', 'fixture/../fixture', 'fixture\0', 'fixture\n', '', ' fixture ', '\ud800', 'ﬁxture', 'x'.repeat(1e5), 'fixture.echo', '*', '%s%n', '$(id)', "'; --", '\x1b[2J'];
const got = [];
for (const name of names) {
  for (const way of [() => callTool(name, 'delete_everything', {}), () => callTool('fixture', name, {}), () => describe(name, name), () => callTool(`${name}.${name}`, {})]) {
    try {
      got.push([name.slice(0, 20), await way()]);
    } catch (error) {
      if (!(error instanceof ToolError)) got.push([name.slice(0, 20), String(error).slice(0, 80)]);
    }
  }
}
got;
