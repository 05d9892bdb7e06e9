// Requests to tools, and what comes back.
(native, realm) => {
  const { encode, wellFormed } = realm;
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

  // A program can replace what a stack is, by `Error.prepareStackTrace`, and name functions with half a character.
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
      const json = encode(values[0], true);
      if (json?.[0] === "{") return json;
    }
    return encode(values, true);
  };
  const invoke = (server, tool, values) => {
    let json;
    try {
      json = encodeArguments(values);
    } catch (error) {
      // As an async function would: what runs many calls gets a rejection of this one.
      return Promise.reject(error);
    }
    return request("call", [server, tool, json], unwrap, `${server}.${tool}`);
  };

  Object.assign(realm, { ToolError, ask, errorFrom, hidden, invoke, request, stackHere, textOf });
}
