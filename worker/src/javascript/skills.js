// Saved skills: the module `skills`, and one module for each skill.
(native, realm) => {
  const { NAMES_MAX, ask, global, invoke, isOrdinary, names, request, searchLimit, wellFormed } = realm;

  const { isArray } = Array;
  const DEPTH_MAX = 32;
  const loaded = new Map();
  const loading = [];
  const moduleProxy = (name, exports) => {
    const module = new Proxy(exports, {
      get(target, key) {
        if (key in target || isOrdinary(key)) return Reflect.get(target, key);
        const all = Object.keys(target).join(", ") || "nothing";
        throw new Error(`the skill ${name} exports no ${String(key)}; it exports: ${all}`);
      },
    });
    names.set(module, `[skill: ${name}]`);
    return module;
  };
  const load = (name) => {
    if (loaded.has(name)) return loaded.get(name);
    const path = [...loading, name];
    if (loading.includes(name)) throw new Error(`skills cannot import each other in a circle: ${path.join(" → ")}`);
    if (path.length > DEPTH_MAX) throw new Error(`skills can import each other ${DEPTH_MAX} deep: ${path.join(" → ")}`);
    const skill = ask("load_skill", name);
    if (skill.language !== "typescript") {
      throw new Error(
        `the skill ${skill.name} is written in ${skill.language}: only ${skill.language} can import it, and this program is TypeScript`,
      );
    }
    loading.push(name);
    try {
      const module = moduleProxy(skill.name, native.skill(name, skill.code)(realm.module, realm.import));
      loaded.set(name, module);
      return module;
    } finally {
      loading.pop();
    }
  };

  // Extracts the source of a function of the program, with the imports, helpers and constants that it uses.
  const extractSource = (name) => {
    const [code, free] = native.cutSkill(wellFormed(String(name)));
    const unknown = free.find((other) => !(other in globalThis));
    if (unknown !== undefined) throw new Error(`${name} uses ${unknown}, which this program does not define`);
    return code;
  };
  // The source of a skill: a module, or a program with `return` at its top, which becomes the function of the skill's name.
  const moduleOf = (name, code) => {
    try {
      native.checkSkill(wellFormed(code));
      return code;
    } catch (error) {
      const wrapped = `export async function ${name.replace(/[^A-Za-z0-9_]/g, "_")}() {\n${code}\n}\n`;
      try {
        native.checkSkill(wellFormed(wrapped));
      } catch {
        throw error;
      }
      return wrapped;
    }
  };
  const sourceForm = (name, description, code, tags) => {
    if (typeof name !== "string" || typeof code !== "string" || !isArray(tags)) {
      throw new TypeError("save with four arguments takes name, description and code as text, and an array of tags");
    }
    return { name, description, code: moduleOf(name, code), tags };
  };
  // save({ name, description, tags, code | fn, tests }), save(fn, description, tags), save("name of a function", description, tags) or
  // save(name, description, code, tags).
  const save = async (first, description, third, tags) => {
    const isObject = typeof first === "object" && first !== null;
    const given = isObject ? { ...first } : tags === undefined ? { fn: first, description, tags: third } : sourceForm(first, description, third, tags);
    const { fn, tests, code } = given;
    const functionName = typeof fn === "function" ? fn.name : (fn ?? given.name);
    const source = code ?? extractSource(functionName);
    native.checkSkill(wellFormed(String(source)));
    const skill = { name: given.name ?? functionName, description: given.description, tags: [given.tags ?? []].flat(), language: "typescript" };
    return invoke("skills", "save", [{ ...skill, code: source, ...(tests ? { tests } : {}) }]);
  };
  const search = (query = "", limit) =>
    request("search_skills", [[query].flat().join(" "), searchLimit(limit)], undefined, "a search for skills");
  const list = () => search("", native.searchLimitMax);
  // Calls the function of a skill by the name of the skill.
  const run = async (name, ...values) => {
    const module = load(String(name));
    const plain = (text) => text.replace(/[-_]/g, "").toLowerCase();
    const exported = Object.keys(module).filter((key) => typeof module[key] === "function");
    const key = exported.find((key) => plain(key) === plain(String(name))) ?? (exported.length === 1 ? exported[0] : "default");
    if (!exported.includes(key)) {
      const shown = exported.slice(0, NAMES_MAX).join(", ") || "none";
      throw new Error(`the skill ${name} exports no function of its name; import one of its functions: ${shown}`);
    }
    return module[key](...values);
  };
  // A function of another name is that of the saved skill of this name, as in `import { f } from "skills"`.
  const skills = new Proxy({ save, search, list, run }, {
    get(target, key) {
      if (key in target || isOrdinary(key)) return Reflect.get(target, key);
      const module = load(key);
      return module[Object.hasOwn(module, key) ? key : "default"];
    },
  });

  // Each program of a session imports the current version of a skill.
  const serve = realm.serve;
  realm.serve = (list) => {
    loaded.clear();
    serve(list);
  };
  const otherModules = realm.module;
  realm.module = (name) => {
    if (name === "skills") return skills;
    return name.startsWith("skills/") ? load(name.slice("skills/".length).replace(/\.ts$/, "")) : otherModules(name);
  };
  names.set(skills, "[saved skills]");
  global("skills", skills);
}
