// Requests to the supervisor, and their replies.
(native, realm) => {
  const { MalformedResult, encode, isDecoded, keepResult, parseExact, parts, prompt, textsIn, toValue, wellFormed } = realm;
  const parse = JSON.parse;
  const { RangeError, TypeError } = globalThis;
  const isView = ArrayBuffer.isView;
  const capture = Error.captureStackTrace;
  // High enough for the engine's own frames, which are removed later.
  Error.stackTraceLimit = 25;

  class ToolError extends Error {
    #result;
    constructor(message, { code, server, tool, retryable = false, result } = {}) {
      super(message);
      this.#result = result;
      this.code = code;
      this.server = server;
      this.tool = tool;
      this.retryable = retryable;
    }
    static {
      // The JSON of the failed result, if it has more than the message.
      realm.failedResult = (error) => (#result in error ? error.#result : undefined);
    }
  }
  Object.defineProperty(ToolError.prototype, "name", { value: "ToolError", configurable: true, writable: true });

  const hidden = (object, key, value) =>
    Object.defineProperty(object, key, { value, configurable: true, writable: true, enumerable: false });
  hidden(String.prototype, "json", function json() {
    return parse(this);
  });

  // A program can replace the stack by `Error.prepareStackTrace`, and use lone surrogates in function names.
  const textOf = (stack) => (typeof stack === "string" ? wellFormed(stack) : "");
  const stackHere = () => {
    const here = {};
    capture(here);
    return textOf(here.stack);
  };
  const errorFrom = (failure, stack) => {
    const error = new ToolError(failure.message, failure);
    if (stack) hidden(error, "stack", native.frames(stack));
    return error;
  };

  // Outlines of the most recent tool results, for error messages: kinds and property names of up to three results.
  const { isArray } = Array;
  const { create, keys } = Object;
  const KEYS = 40;
  const LEVELS = 3;
  const PARTS_MAX = 60;
  let answered = [];
  const outline = (value, budget = { parts: PARTS_MAX }, level = 0) => {
    if (typeof value !== "object" || value === null || isView(value)) return { kind: value === null ? "null" : isView(value) ? "bytes" : typeof value };
    const inner = (part) => {
      if (typeof part !== "object" || part === null || level === LEVELS || budget.parts === 0) return undefined;
      budget.parts -= 1;
      return outline(part, budget, level + 1);
    };
    if (isArray(value)) return { kind: "array", count: value.length, item: inner(value[0]) };
    const names = keys(value).slice(0, KEYS);
    const parts = create(null);
    for (const name of names) parts[name] = inner(value[name]);
    return { kind: "object", keys: names, parts };
  };
  const remember = (subject, value) => {
    try {
      answered = [...answered.filter(([other]) => other !== subject), [subject, outline(value)]].slice(-3);
    } catch {} // The program has replaced what this uses.
  };

  // Pending requests.
  const pending = new Map();
  const request = (kind, texts, shape, subject, { timeoutMs = 0, decoded = [] } = {}) =>
    new Promise((resolve, reject) => {
      const stack = stackHere();
      const [first = "", second = "", third = ""] = texts;
      const answer = native.start(kind, [wellFormed(first), wellFormed(second), third], timeoutMs, stack, decoded);
      if (answer[1]) reject(errorFrom(answer[1], stack));
      else pending.set(answer[0], { resolve, reject, shape, stack, subject, server: first, tool: second });
    });
  // Converts a reply. A result that MCP does not permit is an error of the tool.
  const shaped = ({ shape, server, stack, tool }, value) => {
    try {
      return shape(value);
    } catch (error) {
      const isMalformed = error instanceof MalformedResult;
      if (!isMalformed && !(error instanceof TypeError) && !(error instanceof RangeError)) throw error;
      const what = isMalformed ? "the server's result is malformed" : "the answer cannot be read";
      throw errorFrom({ message: `${what}: ${error.message}`, code: "tool_failed", server, tool }, stack);
    }
  };
  realm.settle = (id, succeeded, reply, isText, bytes) => {
    const waiting = pending.get(id);
    if (!waiting) return;
    pending.delete(id);
    if (!succeeded) return waiting.reject(errorFrom(reply, waiting.stack));
    try {
      const value = isText ? parseExact(reply) : reply;
      const result = waiting.shape ? shaped(waiting, value) : value;
      if (waiting.shape === toValue) {
        keepResult(result, value, bytes);
        remember(waiting.subject, result);
      }
      waiting.resolve(result);
    } catch (error) {
      waiting.reject(error);
    }
  };
  // Subject and stack of the first pending request.
  realm.waiting = () => {
    for (const { subject, stack } of pending.values()) return [subject, stack];
    return ["", ""];
  };
  // Drops the pending requests and the outlines of a finished run.
  realm.forget = () => {
    pending.clear();
    answered = [];
  };
  const ask = (kind, first, second = "") => {
    const answer = native.ask(kind, wellFormed(first), second);
    if (!answer[0]) throw errorFrom(answer[1]);
    return answer[1];
  };

  // Encodes a single object as named arguments, and anything else as an array in the order of the parameters: as JSON, with
  // the decoded results in it. A decoded object is never the named arguments, since its names come from a server.
  // Trailing undefined values are omitted.
  const encodeArguments = (values, parameters) => {
    while (values.length && values[values.length - 1] === undefined) values.pop();
    if (values.length === 0) return ["{}", []];
    if (values.length === 1 && typeof values[0] === "object" && !isView(values[0]) && !isDecoded(values[0])) {
      const json = encode(values[0], true);
      if (json?.[0] === "{") return [json, textsIn(values[0])];
    }
    const isNamed = parameters?.length >= values.length && values.includes(undefined);
    const chosen = isNamed ? Object.fromEntries(values.map((value, index) => [parameters[index], value])) : values;
    return [encode(chosen, true), textsIn(chosen)];
  };
  // Converts a timeout to milliseconds; 0 for the configured timeout.
  const milliseconds = (options) => {
    const seconds = options?.timeout;
    if (seconds === undefined || seconds === null) return 0;
    if (typeof seconds === "number" && seconds > 0) return Math.max(1, Math.round(Math.min(seconds, 4e6) * 1000));
    throw new ToolError("timeout must be a number of seconds above 0", { code: "invalid_arguments" });
  };
  const invoke = (server, tool, values, options, parameters) => {
    let json, decoded, timeoutMs;
    try {
      [json, decoded] = encodeArguments(values, parameters);
      timeoutMs = milliseconds(options);
    } catch (error) {
      // Rejects like an async function, so that callers with many calls see which one failed.
      return Promise.reject(error);
    }
    return request("call", [server, tool, json], toValue, `${server}.${tool}`, { timeoutMs, decoded });
  };

  // Clamps a search limit to the valid range.
  const searchLimit = (limit) =>
    String(Math.min(Math.max(Math.trunc(Number(limit)) || native.searchLimitDefault, 1), native.searchLimitMax));

  // Resources and prompts.
  const listed = ({ items, templates, incomplete }) => {
    if (incomplete) native.print(true, `there are more than these ${items.length}: the rest is left out\n`);
    return [...items, ...templates];
  };
  const offers = {
    listResources: (server) => request("list_resources", [server], listed, `the resources of ${server}`),
    readResource: (server, uri) => request("read_resource", [server, `${uri}`], parts, `${uri}`),
    listPrompts: (server) => request("list_prompts", [server], listed, `the prompts of ${server}`),
    async getPrompt(server, name, values = {}) {
      return request("get_prompt", [server, `${name}`, encode(values, true)], prompt, `the prompt ${name}`);
    },
  };

  Object.assign(realm, { answers: () => answered, outline, ToolError, ask, errorFrom, hidden, invoke, offers, request, searchLimit, stackHere, textOf });
}
