// attack: import in code that is made at run time, which the transformer never sees
// outcome: ok []
// control: outside
const AsyncFunction = (async () => {}).constructor;
const makers = {
  eval: () => eval("import('node:fs')"),
  'indirect eval': () => (0, eval)("import('node:fs')"),
  Function: () => Function("return import('node:fs')")(),
  AsyncFunction: () => AsyncFunction("return await import('node:fs')")(),
  'eval of std': () => eval("import('std')"),
  'eval of qjs:os': () => eval("import('qjs:os')"),
  'eval of a path': () => eval("import('{DIR}/file')"),
};
const got = [];
for (const [name, make] of Object.entries(makers)) {
  try {
    const module = await make();
    got.push(`${name}: ${Object.keys(module)}`);
  } catch {}
}
if (globalThis.process && !got.some((line) => line.startsWith('eval'))) throw new Error('the control found nothing');
got;
