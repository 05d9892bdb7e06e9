// What was meant, and what tools answered, for the words of errors. Asked for only when a program has failed.
(native, realm) => {
  const { answers, closest, servers } = realm;

  const written = new Map(Object.entries({
    print: "console.log(...)", None: "null", True: "true", False: "false", len: "....length", str: "String(...)",
    int: "Math.trunc(Number(...))", float: "Number(...)", json: "JSON", dict: "{ ... }", list: "[...]", range: "a for loop",
    enumerate: ".entries()", sorted: ".sort()", sum: ".reduce((a, b) => a + b, 0)", isinstance: "instanceof or typeof",
    asyncio: "await and Promise.all", self: "globalThis", nil: "null", pass: "{}", sleep: "await new Promise((done) => setTimeout(done, ms))",
  }));
  const methods = new Map(Object.entries({
    append: ".push(value)", extend: ".push(...values)", strip: ".trim()", upper: ".toUpperCase()", lower: ".toLowerCase()",
    startswith: ".startsWith(...)", endswith: ".endsWith(...)", replace_all: ".replaceAll(...)", get: "[key] or ?.", items: "Object.entries(...)",
    len: ".length", length: ".length, without parentheses", size: ".size, without parentheses, or .length", format: "a template: `${...}`",
    contains: ".includes(...)", count: ".filter(...).length", remove: ".filter(...)", insert: ".splice(at, 0, value)", copy: "structuredClone(...)",
    isEmpty: ".length === 0", first: "[0]", last: ".at(-1)",
  }));
  const names = (of) => Object.getOwnPropertyNames(of);
  const offered = () => [Array, String, Map, Set, Promise, Number, Date, RegExp].flatMap((of) => names(of.prototype)).concat(names(Object), names(Math), names(JSON));

  // How a tool of that name is called. One search, where there is a server.
  const toolNamed = (name) => {
    if (!servers.size) return null;
    const loose = (text) => text.replace(/[-_.]/g, "").toLowerCase();
    const words = name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
    const [done, found] = native.ask("search", words, `${native.searchLimitDefault}`, "names");
    const row = done && found.tools.find((row) => loose(row.tool) === loose(name));
    if (!row) return null;
    const { proxy } = servers.get(row.server) ?? {};
    const shown = globalThis[row.server.replaceAll("-", "_")] === proxy ? row.server.replaceAll("-", "_") : `mcp[${JSON.stringify(row.server)}]`;
    return `it is a tool: write \`await ${shown}.${row.identifier ?? row.tool}({ ... })\``;
  };

  // For a name that is not there: the names that the program binds, the globals and the tools.
  realm.meantName = (name, bound) => {
    if (written.has(name)) return `in TypeScript it is ${written.get(name)}`;
    const near = toolNamed(name) ?? closest(name, bound) ?? closest(name, names(globalThis).filter((other) => other !== name));
    if (!near) return null;
    return near.startsWith("it is") ? near : `did you mean ${near}?`;
  };
  realm.meantServer = (name) => {
    const server = realm.serverName(globalThis[name]) && servers.get(name);
    return server ? `${name} is an MCP server: call one of its tools, as in await ${name}.TOOL({ ... })` : null;
  };
  realm.meantMethod = (name) => {
    if (methods.has(name)) return `in TypeScript it is ${methods.get(name)}`;
    const all = offered();
    const near = all.includes(name) ? undefined : closest(name, all);
    return near ? `did you mean .${near}?` : null;
  };

  // The shapes of the last answers: what is there, and never what it says.
  const described = ([kind, count, keys]) => {
    const more = keys?.length > 12 ? ` and ${keys.length - 12} more` : "";
    const list = keys && (keys.length ? `the keys ${keys.slice(0, 12).join(", ")}${more}` : "no keys");
    if (kind === "object") return `an object with ${list}`;
    if (kind !== "array") return kind === "string" ? "text; if it is JSON, .json() gives its value" : kind === "null" ? "null" : `a ${kind}`;
    return count ? `an array of ${count}${keys ? ` objects with ${list}` : ""}` : "an empty array";
  };
  realm.answered = () => {
    const shown = answers().map(([subject, outline]) => `${subject} answered ${described(outline)}`);
    return shown.length ? shown.join("; ") : null;
  };
}
