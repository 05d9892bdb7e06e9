// MCP servers as objects whose properties are their tools.
(native, realm) => {
  const { ToolError, ask, errorFrom, hidden, invoke, offers, wellFormed } = realm;

  const servers = new Map();
  const names = new WeakMap();
  // Normalizes a name: `list-issues`, `list_issues` and `listIssues` are equal.
  const normalize = (name) => name.replace(/[-_./\s]/g, "").toLowerCase();
  // Returns the single match, or undefined if there are several.
  const onlyMatch = (found) => (found.length === 1 ? found[0] : undefined);
  const findServer = (name) => {
    if (servers.has(name)) return servers.get(name);
    const all = [...servers.values()];
    return (
      onlyMatch(all.filter((server) => server.name.replaceAll("-", "_") === name)) ??
      onlyMatch(all.filter((server) => normalize(server.name) === normalize(name)))
    );
  };
  const toolList = (server) => (server.list ??= ask("list_tools", server.name));
  const findTool = (server, name) => {
    const checked = server.checked.get(name);
    if (checked) return checked;
    const list = toolList(server);
    return (
      list.find((tool) => tool.name === name) ??
      list.find((tool) => tool.identifier === name) ??
      onlyMatch(list.filter((tool) => normalize(tool.name) === normalize(name)))
    );
  };

  const distance = (a, b) => {
    let row = Array.from({ length: b.length + 1 }, (_, index) => index);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) {
        next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      }
      row = next;
    }
    return row[b.length];
  };
  const nearest = (wanted, candidates) => {
    const target = normalize(wanted).slice(0, 64);
    return candidates
      .slice(0, 2000)
      .map((name) => {
        const other = normalize(name).slice(0, 64);
        return { name, far: other.includes(target) || target.includes(other) ? 1 : distance(target, other) };
      })
      .filter(({ far }) => far <= Math.max(2, target.length / 3))
      .sort((a, b) => a.far - b.far)
      .slice(0, 3)
      .map(({ name }) => name);
  };
  // Returns the most similar name, if any is similar enough.
  const closest = (wanted, candidates) => nearest(wanted, candidates.filter((name) => name.length > 2))[0];
  const unknownToolError = (message, wanted, candidates, details) => {
    const close = nearest(wanted, candidates).filter((name) => !message.includes(name));
    const hint = close.length ? `${/[.?!]$/.test(message) ? "" : "."} The nearest: ${close.join(", ")}` : "";
    return new ToolError(message + hint, { code: "unknown_tool", ...details });
  };

  // Names of the search function in programs for similar products; a tool of such a name has precedence.
  const isSearch = (key) => ["search", "searchtools"].includes(normalize(key));
  const NAMES_MAX = 6;

  // Property names that the language or a console looks up on any object.
  const ordinaryNames = new Set(["then", "catch", "finally", "toJSON", "inspect", "nodeType", "$$typeof", "prototype"]);
  const isOrdinary = (key) => typeof key === "symbol" || ordinaryNames.has(key) || key in Object.prototype;

  const toolFunction = (server, name, parameters) => {
    const call = { [name]: (...values) => invoke(server.name, name, values, undefined, parameters) }[name];
    server.functions.set(name, call);
    return call;
  };
  const listTools = (server) => async () => toolList(server);
  const property = (server, key) => {
    const found = findTool(server, key);
    if (found) return server.functions.get(found.name) ?? toolFunction(server, found.name, found.parameters);
    if (key === "listTools" || key === "list_tools") return listTools(server);
    const offer = Object.keys(offers).find((name) => normalize(name) === normalize(key));
    if (offer) return (...values) => offers[offer](server.name, ...values);
    const answer = native.ask("describe", server.name, wellFormed(key));
    if (answer[0]) {
      const parameters = answer[1]?.parameters?.map((parameter) => parameter.name);
      return toolFunction(server, answer[1]?.name ?? key, parameters);
    }
    if (answer[1].code !== "unknown_tool") throw errorFrom(answer[1]);
    if (isSearch(key)) return (query, options) => realm.searchTools({ server: server.name, ...(typeof query === "object" ? query : { query }) }, options);
    throw unknownToolError(answer[1].message, key, toolList(server).map((tool) => tool.identifier ?? tool.name), {
      server: server.name,
      tool: key,
    });
  };
  const proxyHandler = (server) => ({
    get(target, key) {
      if (isOrdinary(key)) return Reflect.get(target, key);
      const known = server.properties.get(key);
      if (known) return known;
      const made = property(server, key);
      server.properties.set(key, made);
      return made;
    },
    has: (target, key) => !isOrdinary(key) && findTool(server, key) !== undefined,
    set: (target, key) => {
      throw new TypeError(`${server.name}.${String(key)} cannot be set: the properties of a server are its tools`);
    },
    ownKeys: () => toolList(server).map((tool) => tool.identifier ?? tool.name),
    getOwnPropertyDescriptor(target, key) {
      if (isOrdinary(key) || !findTool(server, key)) return undefined;
      return { value: this.get(target, key), enumerable: true, configurable: true };
    },
  });
  // The target of a server's proxy.
  class McpServer {
    #shown;
    constructor(name) {
      this.#shown = `[MCP server: ${name}]`;
      hidden(this, "toString", () => this.#shown);
      hidden(this, "toJSON", () => this.#shown);
    }
  }
  const serverObject = (name) => {
    const server = { name, list: undefined, checked: new Map(), functions: new Map(), properties: new Map(), proxy: undefined };
    server.proxy = new Proxy(new McpServer(name), proxyHandler(server));
    names.set(server.proxy, `[MCP server: ${name}]`);
    servers.set(name, server);
  };
  // The server that a global name of the program is, for a call of this tool; null for other names.
  realm.serverOfName = (name, key) => {
    if (realm.scope && name in realm.scope) return null;
    if (isOrdinary(key) || isSearch(key) || /^list_?tools$/i.test(key) || Object.keys(offers).some((offer) => normalize(offer) === normalize(key))) return null;
    const value = globalThis[name];
    for (const server of servers.values()) if (server.proxy === value) return server.name;
    return null;
  };
  // Keeps the entries of tools that the program mentions, which arrive with it.
  realm.rememberTools = (list) => {
    for (const [server, name, tool] of list) realm.rememberTool(server, name, tool);
  };
  // Keeps the entry of a tool that the check before the run has returned.
  realm.rememberTool = (server, name, tool) => servers.get(server)?.checked.set(name, tool);
  realm.serverName = (value) => names.get(value);

  Object.assign(realm, { NAMES_MAX, toolList, closest, servers, names, findServer, findTool, isOrdinary, normalize, serverObject, unknownToolError });
}
