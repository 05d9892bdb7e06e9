// The module `mcp_tools`, and module lookup for `import` and `require`.
(native, realm) => {
  const { NAMES_MAX, ToolError, closest, findTool, normalize, global, invoke, isDecoded, isOrdinary, names, offers, request, searchLimit, serverObject, findServer, toolList, servers, unknownToolError } = realm;

  // The server whose object a value is.
  const serverOf = (value) => [...servers.values()].find(({ proxy }) => proxy === value);
  // Splits a name that begins with a server, such as `mcp__github__list_issues`; undefined if no server has such a name.
  const splitFlatName = (text, marks = ["__", ".", "/", "_"]) => {
    const plain = text.startsWith("mcp__") ? text.slice(5) : text;
    const longestFirst = [...servers.keys()].sort((a, b) => b.length - a.length);
    for (const server of longestFirst) {
      for (const written of [server, server.replaceAll("-", "_")]) {
        const mark = marks.find((mark) => plain.startsWith(written + mark) && plain.length > written.length + mark.length);
        if (mark) return [server, plain.slice(written.length + mark.length)];
      }
    }
  };
  const splitName = (name) => {
    const text = String(name);
    const found = splitFlatName(text);
    if (found) return found;
    const plain = text.startsWith("mcp__") ? text.slice(5) : text;
    const [, server, tool] = /^(.+?)(?:__|\.|\/)(.+)$/.exec(plain) ?? [];
    if (!tool) throw unknownToolError(`"${text}" names no tool: write "${realm.fullNameOfTool(text) ?? "server.tool"}"`, text, [...servers.keys()], { tool: text });
    return [server, tool];
  };
  const resolve = (serverName, tool) => {
    const server = findServer(String(serverName));
    return [server, server?.name ?? String(serverName), (server?.list && findTool(server, tool)?.name) ?? tool];
  };
  // Server, tool, arguments and options for any form of a call. The names in a decoded result come from a server, so that such
  // a value is no form of MCP clients.
  const callParts = (first, second, third, fourth) => {
    if (typeof first === "object" && first !== null && !names.has(first) && !isDecoded(first)) {
      const { name, server, tool = name, arguments: values = {}, ...others } = first;
      const other = Object.keys(others)[0];
      if (other !== undefined) {
        throw new ToolError(`callTool takes no "${other}" beside the name: put it into "arguments"`, { code: "invalid_arguments" });
      }
      return server === undefined ? [...splitName(tool), values, second] : [server, tool, values, second];
    }
    const isTool = typeof second === "string" && !/\s*\{/y.test(second);
    return isTool ? [first, second, third, fourth] : [...splitName(first), second, third];
  };
  // `callTool(server, tool, values, options)`, `callTool({ name: "server.tool", arguments: values }, options)` or `callTool("server.tool", values, options)`; `options.timeout` is in
  // seconds.
  const callTool = (first, second, third, fourth) => {
    const [serverName, tool, values, options] = callParts(first, second, third, fourth);
    const [server, name, exact] = resolve(serverName, tool);
    const call = invoke(name, exact, [values], options);
    if (!server || server.list) return call;
    // The list of tools is loaded only after a failure, to find a tool under another form of the name.
    return call.catch((error) => {
      const found = error.code === "unknown_tool" && findTool(server, tool);
      if (!found || found.name === exact) throw error;
      return invoke(name, found.name, [values], options);
    });
  };
  const describe = (first, second) => {
    const alone = second === undefined && (serverOf(first) ?? findServer(String(first)));
    if (alone) return request("describe", [alone.name, ""], undefined, `describe ${alone.name}`);
    const [, server, tool] = resolve(...(typeof second === "string" ? [first, second] : splitName(first)));
    return request("describe", [server, tool], undefined, `describe ${server}.${tool}`);
  };
  const searchTools = (query, options) => {
    const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
    const first = isObject(query) ? query : { query };
    const parameters = { ...first, ...(isObject(options) ? options : { limit: options ?? first.limit }) };
    const text = [parameters.search ?? parameters.query ?? ""].flat().map(String).join(" ");
    const only = parameters.server === undefined ? "" : `server:${findServer(String(parameters.server))?.name ?? parameters.server} `;
    const words = only + text;
    const detail = parameters.detail ?? "signatures";
    // Servers that do not connect in time are not searched; a line on stderr names them.
    const toolsOf = ({ tools, missing }) => {
      for (const server of missing) native.print(true, `searchTools: ${server}\n`);
      return tools;
    };
    return request("search", [words, searchLimit(parameters.limit), String(detail)], toolsOf, "a search for tools");
  };
  const loadResult = (handle) => request("load_result", [`${handle}`], undefined, "a kept result");
  // Compatibility with similar products: names that contain the server, and schemas as `parameters`.
  const withSchema = (tool) => ({
    ...tool,
    name: `mcp__${tool.server}__${tool.tool ?? tool.name}`,
    parameters: tool.inputSchema,
  });
  const getToolSchema = async (...name) => withSchema(await describe(...name));
  const describeAll = async ({ name }) => {
    const list = request("list_tools", [name], undefined, `the tools of ${name}`);
    // An unavailable server must not hide the tools of others.
    return Promise.all((await list.catch(() => [])).map((tool) => describe(name, tool.name)));
  };
  const discoverMCPTools = async (options) => {
    const words = [options?.search ?? options ?? []].flat().filter((word) => typeof word === "string");
    const found = words.length
      ? await searchTools({ query: words.join(" "), limit: native.searchLimitMax, detail: "full" })
      : (await Promise.all([...servers.values()].map(describeAll))).flat();
    return found.map(withSchema);
  };
  const listServers = () => request("list_servers", [], undefined, "the list of servers");
  const offer = (name) => (server, ...values) => {
    const known = serverOf(server) ?? findServer(String(server));
    return offers[name](known?.name ?? String(server), ...values);
  };
  const [listResources, readResource] = [offer("listResources"), offer("readResource")];
  const [listPrompts, getPrompt] = [offer("listPrompts"), offer("getPrompt")];
  realm.searchTools = searchTools;
  const functions = {
    ToolError, callTool, describe, searchTools, listServers,
    call_tool: callTool, search_tools: searchTools, list_servers: listServers,
    loadResult, load_result: loadResult, fullResult: realm.fullResult, full_result: realm.fullResult,
    listResources, readResource, listPrompts, getPrompt,
    list_resources: listResources, read_resource: readResource, list_prompts: listPrompts, get_prompt: getPrompt,
    callMCPTool: callTool, call_mcp_tool: callTool,
    discoverMCPTools, discover_mcp_tools: discoverMCPTools,
    getToolSchema, get_tool_schema: getToolSchema,
  };
  // The error texts for servers that the request to run code left out.
  const leftOut = new Map();
  realm.leaveOut = (texts) => {
    leftOut.clear();
    for (const [name, text] of Object.entries(texts)) leftOut.set(name, text);
  };
  realm.leftOutReason = (name) => leftOut.get(name) ?? null;
  const unknownServerError = (name) => {
    const [server, tool] = splitFlatName(String(name), ["__"]) ?? [];
    if (server && !findTool(servers.get(server), tool)) {
      const list = toolList(servers.get(server)).map((known) => known.identifier ?? known.name);
      return unknownToolError(`server ${server} has no tool ${tool}`, tool, list, { server, tool });
    }
    if (server) {
      return new ToolError(`${name} names the tool ${tool} of the server ${server}: import { ${tool} } from "mcp_tools/${server}"`, { code: "unknown_tool", server, tool });
    }
    if (leftOut.has(name)) return new ToolError(leftOut.get(name), { code: "denied", server: name });
    const all = [...servers.keys()];
    const more = all.length > NAMES_MAX ? ` and ${all.length - NAMES_MAX} more` : "";
    const list = `servers: ${all.slice(0, NAMES_MAX).join(", ") || "none"}${more}`;
    const near = closest(String(name), [...all, ...Object.keys(functions)]);
    return new ToolError(`there is no MCP server '${name}'; ${near ? `did you mean ${near}? ` : ""}${list}`, { code: "unknown_tool", server: name });
  };
  const mcp = new Proxy(functions, {
    get(target, key) {
      if (Object.hasOwn(target, key)) return target[key];
      const server = typeof key === "string" && findServer(key);
      if (server) return server.proxy;
      if (isOrdinary(key)) return Reflect.get(target, key);
      throw unknownServerError(key);
    },
    has: (target, key) => Object.hasOwn(target, key) || (typeof key === "string" && findServer(key) !== undefined),
  });
  names.set(mcp, "[MCP servers]");

  // Names that programs use in similar products: `tools` and `codemode` with the servers and functions, `ALL_TOOLS`, and
  // functions such as `github__list_issues`.
  const functionOf = (name) => ({ search: searchTools, call: callTool })[name] ?? (Object.hasOwn(functions, name) ? functions[name] : undefined);
  const flatFunction = (name, marks) => {
    const found = splitFlatName(name, marks);
    return found && ((...values) => findServer(found[0]).proxy[found[1]](...values));
  };
  const namespace = (own) => {
    const made = new Proxy(Object.create(null), {
      get(target, key) {
        if (isOrdinary(key)) return Reflect.get(target, key);
        const value = findServer(key)?.proxy ?? functionOf(key) ?? flatFunction(key);
        if (value === undefined) throw unknownToolName(key) ?? unknownServerError(key);
        return value;
      },
      has: (target, key) => typeof key === "string" && (findServer(key) ?? functionOf(key) ?? flatFunction(key)) !== undefined,
      ownKeys: () => [...servers.keys()],
      getOwnPropertyDescriptor(target, key) {
        return servers.has(key) ? { value: this.get(target, key), enumerable: true, configurable: true } : undefined;
      },
    });
    names.set(made, `[${own}]`);
    return made;
  };
  const unknownToolName = (name) => {
    const place = realm.placeOfTool(name);
    return place && new ToolError(`${name}: ${place}`, { code: "unknown_tool", tool: name });
  };
  const allTools = () =>
    [...servers.values()].flatMap((server) => {
      try {
        return toolList(server).map(({ name, summary }) => ({ server: server.name, name, description: summary ?? "" }));
      } catch {
        return []; // An unavailable server must not hide the tools of others.
      }
    });
  const similar = { tools: namespace("tools"), codemode: namespace("codemode"), servers: namespace("servers") };
  realm.offerFlatNames = (list) => {
    for (const name of list) {
      const call = name in globalThis ? undefined : flatFunction(name, ["__"]);
      if (call) global(name, call);
    }
  };

  // Alternatives for well-known modules, by the first part of the module name.
  const alternatives = new Map([
    ["timers", "use the global setTimeout"],
    ["perf_hooks", "use the global performance"],
    ["querystring", "use URLSearchParams"],
    ["assert", "throw an Error"],
    ["events", "use functions and promises"],
    ["uuid", "use crypto.randomUUID()"],
    ["nanoid", "use crypto.randomUUID()"],
    ["lodash", "use the methods of arrays and objects"],
    ["ramda", "use the methods of arrays and objects"],
    ["underscore", "use the methods of arrays and objects"],
    ["moment", "use Date and Intl.DateTimeFormat"],
    ["dayjs", "use Date and Intl.DateTimeFormat"],
    ["date-fns", "use Date and Intl.DateTimeFormat"],
    ["luxon", "use Date and Intl.DateTimeFormat"],
    ["zod", "look at the values with if"],
    ["chalk", "use console.log"],
    ["process", "put values into the code, and use console.log and return"],
    ["dotenv", "put values into the code"],
    ["openai", "return the data, and judge it where this code was written"],
    ["@anthropic-ai", "return the data, and judge it where this code was written"],
    ["langchain", "return the data, and judge it where this code was written"],
    ...["@modelcontextprotocol", "mcp", "fastmcp"].map((name) => [name, 'the servers are connected already: import from "mcp_tools/SERVER"']),
    [".", "a program is alone: put the code into it"],
    ["..", "a program is alone: put the code into it"],
  ]);
  const alternativeFor = (name) => alternatives.get(name.replace(/^node:/, "").split("/")[0]) ?? "use a tool of an MCP server instead";
  // Import paths of similar products: "./servers/github", "../servers/github/index.ts", "tools/github" and "github".
  const serverOfPath = (path) => {
    const inner = /^(?:\.{0,2}\/)*(?:servers|mcp|tools)\/([^/]+?)(?:\/index)?(?:\.[jt]s)?$/.exec(path);
    return findServer(inner ? inner[1] : path);
  };
  const isServersPath = (path) => /^(?:\.{1,2}\/)+servers(?:\/index)?(?:\.[jt]s)?\/?$|^\/?servers(?:\/index)?(?:\.[jt]s)?$/.test(path);
  // The module of one tool, as "./servers/github/createIssue" or "mcp_tools/github/create_issue": the function, which is also its default and its named export.
  const toolOfPath = (path) => {
    const inner = /^(?:(?:\.{0,2}\/)*(?:servers|mcp|tools)|mcp_tools)\/([^/]+)\/([^/]+?)(?:\.[jt]s)?$/.exec(path);
    const server = inner && findServer(inner[1]);
    if (!server || inner[2] === "index") return undefined;
    const call = server.proxy[inner[2]];
    const isOwnName = (key) => typeof key === "string" && (key === "default" || normalize(key) === normalize(inner[2]));
    return new Proxy(call, {
      get(target, key) {
        if (isOwnName(key)) return call;
        if (isOrdinary(key) || key in target) return Reflect.get(target, key);
        throw new Error(`${path} has no ${String(key)}: it exports the tool ${call.name}`);
      },
      has: (target, key) => isOwnName(key) || key in target,
    });
  };

  // Module lookup for `import` and `require`.
  realm.module = (name) => {
    if (name === "mcp_tools") return mcp;
    const tool = toolOfPath(name);
    if (tool) return tool;
    if (isServersPath(name) && !findServer(name)) return similar.servers;
    if (name.startsWith("mcp_tools/")) {
      const server = findServer(name.slice("mcp_tools/".length));
      if (server) return server.proxy;
      throw unknownServerError(name.slice("mcp_tools/".length));
    }
    const server = serverOfPath(name);
    if (server) return server.proxy;
    const [, unknown] = /^(?:\.{0,2}\/)*servers\/([^/]+?)(?:\/.*|\.[jt]s)?$/.exec(name) ?? [];
    if (unknown) throw unknownServerError(unknown);
    throw new Error(
      `No module named '${name}': not available in the Lockhouse sandbox: there are no packages, network and ` +
        `processes; ${alternativeFor(name)}`,
    );
  };
  realm.import = async (name) => realm.module(String(name));

  const camel = (name) => name.replace(/[-_]+([A-Za-z0-9])/g, (_, letter) => letter.toUpperCase());
  // A server replaces these globals if it has the same name.
  const replaceable = { mcp, ...similar, ...functions };
  const isFree = (name) => !(name in globalThis) || (Object.hasOwn(replaceable, name) && globalThis[name] === replaceable[name]);
  // Creates the servers of a run. Each becomes a global variable unless its name is in use.
  const knownServers = new Map();
  realm.serve = (list) => {
    // The servers may differ between the runs of a session, but existing objects stay valid.
    servers.clear();
    for (const name of list) {
      const known = knownServers.get(name);
      if (known) {
        known.list = undefined;
        known.properties.clear();
        known.checked.clear();
        servers.set(name, known);
      } else {
        serverObject(name);
        knownServers.set(name, servers.get(name));
      }
    }
    for (const form of [(name) => name, (name) => name.replaceAll("-", "_"), camel]) {
      for (const name of list) {
        // The global `files` stays the one of files in memory if the server is Lockhouse's own.
        if (name !== realm.ownServer && isFree(form(name))) global(form(name), servers.get(name).proxy);
      }
    }
  };
  // Makes a value a global that a server of the same name replaces.
  realm.offerGlobal = (name, value) => {
    replaceable[name] = value;
    global(name, value);
  };
  realm.serverOfPath = serverOfPath;
  realm.unknownServerError = unknownServerError;
  global("mcp_tools", mcp);
  for (const name of Object.keys(replaceable)) global(name, replaceable[name]);
  Object.defineProperty(globalThis, "ALL_TOOLS", {
    get: allTools,
    set: (value) => global("ALL_TOOLS", value),
    configurable: true,
    enumerable: false,
  });
}
