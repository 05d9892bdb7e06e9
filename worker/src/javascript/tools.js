// The MCP servers as objects, their tools as functions.
(native, realm) => {
  const { encode, global, wellFormed } = realm;
  const parse = JSON.parse;
  const isView = ArrayBuffer.isView;
  const capture = Error.captureStackTrace;
  // Frames of ours come first and are dropped later.
  Error.stackTraceLimit = 25;

  class ToolError extends Error {
    constructor(message, { code, server, tool, retryable = false } = {}) {
      super(message);
      this.code = code;
      this.server = server;
      this.tool = tool;
      this.retryable = retryable;
    }
  }
  Object.defineProperty(ToolError.prototype, "name", { value: "ToolError", configurable: true, writable: true });

  const hidden = (object, key, value) =>
    Object.defineProperty(object, key, { value, configurable: true, writable: true, enumerable: false });
  hidden(String.prototype, "json", function json() {
    return parse(this);
  });

  const stackHere = () => {
    const here = {};
    capture(here);
    return here.stack;
  };
  const errorFrom = (failure, stack) => {
    const error = new ToolError(failure.message, failure);
    if (stack) hidden(error, "stack", native.frames(stack));
    return error;
  };

  // Requests and their replies.
  const pending = new Map();
  const request = (kind, texts, shape, subject) =>
    new Promise((resolve, reject) => {
      const stack = stackHere();
      const answer = native.start(kind, wellFormed(texts[0] ?? ""), wellFormed(texts[1] ?? ""), texts[2] ?? "");
      if (answer[1]) reject(errorFrom(answer[1], stack));
      else pending.set(answer[0], { resolve, reject, shape, stack, subject });
    });
  realm.settle = (id, succeeded, value) => {
    const waiting = pending.get(id);
    if (!waiting) return;
    pending.delete(id);
    if (!succeeded) return waiting.reject(errorFrom(value, waiting.stack));
    try {
      waiting.resolve(waiting.shape ? waiting.shape(value) : value);
    } catch (error) {
      waiting.reject(error);
    }
  };
  // What the program waits for, and since where.
  realm.waiting = () => {
    for (const { subject, stack } of pending.values()) return [subject, stack];
    return ["", ""];
  };
  const ask = (kind, first, second = "") => {
    const answer = native.ask(kind, wellFormed(first), second);
    if (!answer[0]) throw errorFrom(answer[1]);
    return answer[1];
  };

  // Results.
  const block = (content) => {
    if (content.type === "text") return content.text;
    if (typeof content.data === "string") return { ...content, data: native.fromBase64(content.data) };
    if (typeof content.resource?.blob === "string") {
      const { blob, ...rest } = content.resource;
      return { ...rest, data: native.fromBase64(blob) };
    }
    return content.resource ?? content;
  };
  const unwrap = (envelope) => {
    if (Object.hasOwn(envelope, "structured")) return envelope.structured;
    if (Object.hasOwn(envelope, "text")) return envelope.text;
    const blocks = (envelope.content ?? []).map(block);
    return blocks.length === 1 ? blocks[0] : blocks;
  };

  // One object of named arguments as it is; else an array of values in the order of the parameters.
  const encodeArguments = (values) => {
    while (values.length && values[values.length - 1] === undefined) values.pop();
    if (values.length === 0) return "{}";
    if (values.length === 1 && typeof values[0] === "object" && !isView(values[0])) {
      const json = encode(values[0]);
      if (json?.[0] === "{") return json;
    }
    return encode(values);
  };
  const invoke = (server, tool, values) =>
    request("call", [server, tool, encodeArguments(values)], unwrap, `${server}.${tool}`);

  // Servers and names.
  const servers = new Map();
  const names = new WeakMap();
  const loose = (name) => name.replace(/[-_./\s]/g, "").toLowerCase();
  const serverOf = (name) => {
    if (servers.has(name)) return servers.get(name);
    for (const server of servers.values()) if (loose(server.name) === loose(name)) return server;
  };
  const listOf = (server) => (server.list ??= ask("list_tools", server.name));
  const find = (server, name) => {
    const list = listOf(server);
    return (
      list.find((tool) => tool.name === name) ??
      list.find((tool) => tool.identifier === name) ??
      list.find((tool) => loose(tool.name) === loose(name))
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
    const target = loose(wanted).slice(0, 64);
    return candidates
      .slice(0, 2000)
      .map((name) => {
        const other = loose(name).slice(0, 64);
        return { name, far: other.includes(target) || target.includes(other) ? 1 : distance(target, other) };
      })
      .filter(({ far }) => far <= Math.max(2, target.length / 3))
      .sort((a, b) => a.far - b.far)
      .slice(0, 3)
      .map(({ name }) => name);
  };
  const unknown = (message, wanted, candidates, details) => {
    const close = nearest(wanted, candidates).filter((name) => !message.includes(name));
    const hint = close.length ? `${/[.?!]$/.test(message) ? "" : "."} The nearest: ${close.join(", ")}` : "";
    return new ToolError(message + hint, { code: "unknown_tool", ...details });
  };

  // Names that the language or a console looks for in any object.
  const ordinary = new Set(["then", "catch", "finally", "toJSON", "inspect", "nodeType", "$$typeof", "prototype"]);
  const isOrdinary = (key) => typeof key === "symbol" || ordinary.has(key) || key in Object.prototype;

  const toolFunction = (server, name) => {
    const call = { [name]: (...values) => invoke(server.name, name, values) }[name];
    server.functions.set(name, call);
    return call;
  };
  const listTools = (server) => async () => listOf(server);
  const property = (server, key) => {
    const found = find(server, key);
    if (found) return server.functions.get(found.name) ?? toolFunction(server, found.name);
    if (key === "listTools" || key === "list_tools") return listTools(server);
    const answer = native.ask("describe", server.name, wellFormed(key));
    if (answer[0]) return toolFunction(server, answer[1]?.name ?? key);
    if (answer[1].code !== "unknown_tool") throw errorFrom(answer[1]);
    throw unknown(answer[1].message, key, listOf(server).map((tool) => tool.identifier ?? tool.name), {
      server: server.name,
      tool: key,
    });
  };
  const handlerOf = (server) => ({
    get(target, key) {
      if (isOrdinary(key)) return Reflect.get(target, key);
      const known = server.properties.get(key);
      if (known) return known;
      const made = property(server, key);
      server.properties.set(key, made);
      return made;
    },
    has: (target, key) => !isOrdinary(key) && find(server, key) !== undefined,
    set: (target, key) => {
      throw new TypeError(`${server.name}.${String(key)} cannot be set: the properties of a server are its tools`);
    },
    ownKeys: () => listOf(server).map((tool) => tool.identifier ?? tool.name),
    getOwnPropertyDescriptor(target, key) {
      if (isOrdinary(key) || !find(server, key)) return undefined;
      return { value: this.get(target, key), enumerable: true, configurable: true };
    },
  });
  // What a server is to code that knows no proxies.
  class McpServer {
    #shown;
    constructor(name) {
      this.#shown = `[MCP server: ${name}]`;
      hidden(this, "toString", () => this.#shown);
      hidden(this, "toJSON", () => this.#shown);
    }
  }
  const serverObject = (name) => {
    const server = { name, list: undefined, functions: new Map(), properties: new Map(), proxy: undefined };
    server.proxy = new Proxy(new McpServer(name), handlerOf(server));
    names.set(server.proxy, `[MCP server: ${name}]`);
    servers.set(name, server);
  };
  realm.serverName = (value) => names.get(value);

  // The module `mcp_tools`.
  const split = (name) => {
    const text = String(name);
    const plain = text.startsWith("mcp__") ? text.slice(5) : text;
    for (const mark of ["__", ".", "/"]) {
      for (const server of servers.values()) {
        if (plain.startsWith(server.name + mark)) return [server.name, plain.slice(server.name.length + mark.length)];
      }
    }
    const [, server, tool] = /^(.+?)(?:__|\.|\/)(.+)$/.exec(plain) ?? [];
    if (!tool) throw unknown(`"${text}" names no tool: write "server.tool"`, text, [...servers.keys()], { tool: text });
    return [server, tool];
  };
  const resolve = (serverName, tool) => {
    const server = serverOf(String(serverName));
    return [server, server?.name ?? String(serverName), (server?.list && find(server, tool)?.name) ?? tool];
  };
  const callTool = (first, second, third) => {
    const [serverName, tool, values] =
      typeof second === "string" ? [first, second, third] : [...split(first), second];
    const [server, name, exact] = resolve(serverName, tool);
    const call = invoke(name, exact, [values]);
    if (!server || server.list) return call;
    // Only now is the list worth its price: the name may be another form of a tool's.
    return call.catch((error) => {
      const found = error.code === "unknown_tool" && find(server, tool);
      if (!found || found.name === exact) throw error;
      return invoke(name, found.name, [values]);
    });
  };
  const describe = (first, second) => {
    const [, server, tool] = resolve(...(typeof second === "string" ? [first, second] : split(first)));
    return request("describe", [server, tool], undefined, `describe ${server}.${tool}`);
  };
  const searchTools = (query, options) => {
    const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
    const asked = { ...(isObject(query) ? query : { query }), ...(isObject(options) ? options : { limit: options }) };
    const words = [asked.search ?? asked.query ?? ""].flat().map(String).join(" ");
    const most = Math.min(Math.max(Math.trunc(Number(asked.limit)) || 10, 1), 1000);
    return request("search", [words, String(most)], undefined, "a search for tools");
  };
  const listServers = () => request("list_servers", [], undefined, "the list of servers");
  const functions = {
    ToolError, callTool, describe, searchTools, listServers,
    call_tool: callTool, search_tools: searchTools, list_servers: listServers,
    callMCPTool: callTool, call_mcp_tool: callTool,
    discoverMCPTools: searchTools, discover_mcp_tools: searchTools,
    getToolSchema: describe, get_tool_schema: describe,
  };
  const noServer = (name) => {
    const all = [...servers.keys()];
    const list = all.length ? `the servers are ${all.slice(0, 20).join(", ")}` : "no server is available";
    return new ToolError(`no MCP server is named "${name}": ${list}`, { code: "unknown_tool", server: name });
  };
  const mcp = new Proxy(functions, {
    get(target, key) {
      if (Object.hasOwn(target, key)) return target[key];
      const server = typeof key === "string" && serverOf(key);
      if (server) return server.proxy;
      if (isOrdinary(key)) return Reflect.get(target, key);
      throw noServer(key);
    },
    has: (target, key) => Object.hasOwn(target, key) || (typeof key === "string" && serverOf(key) !== undefined),
  });
  names.set(mcp, "[MCP servers]");

  // What `import` and `require` find.
  realm.module = (name) => {
    if (name === "mcp_tools") return mcp;
    if (name.startsWith("mcp_tools/")) {
      const server = serverOf(name.slice("mcp_tools/".length));
      if (server) return server.proxy;
      throw noServer(name.slice("mcp_tools/".length));
    }
    const instead = serverOf(name) ? `write "mcp_tools/${serverOf(name).name}"` : "use a tool of an MCP server instead";
    throw new Error(
      `No module named '${name}': files, network, processes and packages are not available in the Lockhouse sandbox; ${instead}`,
    );
  };
  realm.import = async (name) => realm.module(String(name));

  const camel = (name) => name.replace(/[-_]+([A-Za-z0-9])/g, (_, letter) => letter.toUpperCase());
  // Makes the servers of one execution; each is global under its name where nothing else has that name.
  realm.serve = (list) => {
    for (const name of list) serverObject(name);
    for (const form of [(name) => name, (name) => name.replaceAll("-", "_"), camel]) {
      for (const name of list) {
        if (!(form(name) in globalThis)) global(form(name), servers.get(name).proxy);
      }
    }
    if (!("mcp" in globalThis)) global("mcp", mcp);
  };
  global("mcp_tools", mcp);
  for (const name of Object.keys(functions)) global(name, functions[name]);
}
