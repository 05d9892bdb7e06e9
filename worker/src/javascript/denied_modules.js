// Modules that the configuration denies to programs: imports of them, and of modules below them, fail. No protection: the kernel enforces the sandbox.
(native, realm) => {
  // Called in the zygote.
  realm.denyModules = (names) => {
    const otherModules = realm.module;
    realm.module = (name) => {
      const plain = name.replace(/^node:/, "");
      const denied = names.find((one) => plain === one || plain.startsWith(`${one}/`));
      if (denied !== undefined) {
        throw new Error(`${name} cannot be imported: denied_modules of [javascript] in the configuration has "${denied}"`);
      }
      return otherModules(name);
    };
  };
}
