// attack: stacks that are lists or no valid text, where a tool call and console.trace read them
// outcome: ok ["ToolError","ToolError","ToolError"]
// control: none: a way into this library only
const names: string[] = [];
const call = async () => {
  try {
    await callTool('nobody', 'nothing');
  } catch (error) {
    names.push(error.name);
  }
  console.trace('here');
};
await { [String.fromCharCode(0xd800)]: async () => await call() }[String.fromCharCode(0xd800)]();
Error.prepareStackTrace = (error, sites) => sites;
await call();
Error.prepareStackTrace = () => String.fromCharCode(0xd800);
await call();
names;
