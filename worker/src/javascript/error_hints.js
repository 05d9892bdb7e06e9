// Suggestions for error messages: similar names, and outlines of recent tool results. Called only after a program has
// failed.
(native, realm) => {
  const { NAMES_MAX, answers, closest, servers } = realm;

  const pythonNames = new Map(Object.entries({
    print: "console.log(...)", None: "null", True: "true", False: "false", len: "....length", str: "String(...)",
    int: "Math.trunc(Number(...))", float: "Number(...)", json: "JSON", dict: "{ ... }", list: "[...]", range: "a for loop",
    enumerate: ".entries()", sorted: ".sort()", sum: ".reduce((a, b) => a + b, 0)", isinstance: "instanceof or typeof",
    asyncio: "await and Promise.all", self: "globalThis", nil: "null", pass: "{}", sleep: "await new Promise((done) => setTimeout(done, ms))",
  }));
  const pythonMethods = new Map(Object.entries({
    append: ".push(value)", extend: ".push(...values)", strip: ".trim()", upper: ".toUpperCase()", lower: ".toLowerCase()",
    startswith: ".startsWith(...)", endswith: ".endsWith(...)", replace_all: ".replaceAll(...)", get: "[key] or ?.", items: "Object.entries(...)",
    len: ".length", length: ".length, without parentheses", size: ".size, without parentheses, or .length", format: "a template: `${...}`",
    contains: ".includes(...)", count: ".filter(...).length", remove: ".filter(...)", insert: ".splice(at, 0, value)", copy: "structuredClone(...)",
    isEmpty: ".length === 0", first: "[0]", last: ".at(-1)",
  }));
  const names = (object) => Object.getOwnPropertyNames(object);
  const standardNames = () => [Array, String, Map, Set, Promise, Number, Date, RegExp].flatMap((object) => names(object.prototype)).concat(names(Object), names(Math), names(JSON));

  // Finds a tool by its name without its server. Sends one search request if there are servers.
  const findTool = (name) => {
    if (!servers.size) return undefined;
    const loose = (text) => text.replace(/[-_.]/g, "").toLowerCase();
    const words = name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
    const [done, found] = native.ask("search", words, `${native.searchLimitDefault}`, "names");
    return done ? found.tools.find((row) => loose(row.tool) === loose(name)) : undefined;
  };
  realm.fullNameOfTool = (name) => {
    const row = findTool(name);
    return row && `${row.server}.${row.tool}`;
  };
  const identifier = (server) => server.replaceAll("-", "_");
  const placeOf = (server, tool) => {
    const { proxy } = servers.get(server) ?? {};
    const shown = globalThis[identifier(server)] === proxy ? identifier(server) : `mcp[${JSON.stringify(server)}]`;
    return `it is a tool: write \`await ${shown}.${tool}({ ... })\``;
  };
  // Describes how to call a tool whose name is given without its server; null if no tool has the name.
  realm.placeOfTool = (name) => {
    const row = findTool(name);
    return row ? placeOf(row.server, row.identifier ?? row.tool) : null;
  };

  // Describes how to call a tool whose name begins with its server, such as `github_list_issues`.
  const placeOfFlatName = (name) => {
    for (const server of servers.values()) {
      const start = `${identifier(server.name)}_`;
      const tool = name.startsWith(start) && realm.findTool(server, name.slice(start.length));
      if (tool) return placeOf(server.name, tool.identifier ?? tool.name);
    }
    return undefined;
  };

  // Suggests a name that the program declares, a global or a tool. `member` is the property that the program reads of the name in
  // this line.
  realm.suggestName = (name, bound, member, line) => {
    const leftOut = realm.leftOutReason(name);
    if (leftOut) return leftOut;
    if (pythonNames.has(name)) return `in TypeScript it is ${pythonNames.get(name)}`;
    const place = realm.placeOfTool(name) ?? placeOfFlatName(name);
    if (place) return place;
    const server = member && !closest(name, bound) && closest(name, [...servers.keys()].map(identifier));
    if (server) return `did you mean the MCP server ${server}?`;
    const near = closest(name, bound) ?? closest(name, names(globalThis).filter((other) => other !== name));
    if (near) return `did you mean ${near}?`;
    if (["callTool", "call_tool"].includes(member)) {
      const [, called] = /[tT]ool\(\s*(?:\{\s*name:\s*)?["']([\w.-]+)/.exec(line) ?? [];
      const tool = (called && realm.fullNameOfTool(called)) ?? "SERVER.TOOL";
      return `there is no client to connect, and ${member} is a function: write \`await callTool("${tool}", { ... })\``;
    }
    if (name.includes("__")) return realm.unknownServerError(name.replace(/^mcp__/, "").split("__")[0]).message;
    return member ? realm.placeOfTool(member)?.replace("it is", `${member} is`) : null;
  };
  realm.suggestServer = (name) => {
    const server = realm.serverName(globalThis[name]) && servers.get(name);
    return server ? `${name} is an MCP server: call one of its tools, as in await ${name}.TOOL({ ... })` : null;
  };
  realm.suggestMethod = (name) => {
    if (names(Number.prototype).includes(name) && !(name in Object.prototype)) return `only a number has .${name}: write Number(...).${name}(...)`;
    if (pythonMethods.has(name)) return `in TypeScript it is ${pythonMethods.get(name)}`;
    const all = standardNames();
    const near = all.includes(name) ? undefined : closest(name, all);
    return near ? `did you mean .${near}?` : null;
  };

  const RESULTS_CHARS = 300;
  // Describes the outline of a value: its structure, never its contents.
  const describeRecord = ({ keys }) => `{${[...keys.slice(0, NAMES_MAX), ...(keys.length > NAMES_MAX ? ["…"] : [])].join(", ")}}`;
  const describeOutline = (outline) => {
    if (outline.kind === "object") return `object ${describeRecord(outline)}`;
    if (outline.kind !== "array") return outline.kind === "string" ? "text" : outline.kind;
    return `array of ${outline.count}${outline.item?.kind === "object" ? ` ${describeRecord(outline.item)}` : ""}`;
  };
  realm.describeOutline = describeOutline;
  realm.describeAnswers = () => {
    const shown = answers().map(([subject, outline]) => `"${subject}": ${describeOutline(outline)}`);
    return shown.length ? `results so far: ${shown.join("; ")}`.slice(0, RESULTS_CHARS) : null;
  };
}
