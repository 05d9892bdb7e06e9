// The modules of Node.js that programs can import, such as `node:fs`. Other parts add theirs.
(native, realm) => {
  const { isOrdinary, names } = realm;

  class StandardModule {}
  // A module whose unknown names are errors that list what there is. `remark` is added to them.
  realm.standardModule = (name, exports, remark = "") => {
    const module = new Proxy(Object.assign(new StandardModule(), exports), {
      get(target, key) {
        if (Object.hasOwn(target, key) || isOrdinary(key)) return Reflect.get(target, key);
        if (key === "default") return module;
        throw new TypeError(`${name} has no ${String(key)} in the Lockhouse sandbox${remark}; it has ${Object.keys(exports).join(", ")}`);
      },
    });
    names.set(module, `[module: ${name}]`);
    return module;
  };
  realm.standardModules = Object.create(null);
  const otherModules = realm.module;
  realm.module = (name) => {
    const plain = name.replace(/^node:/, "");
    return plain in realm.standardModules && !realm.serverOfPath(name) ? realm.standardModules[plain] : otherModules(name);
  };
}
