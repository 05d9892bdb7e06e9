// Globals that code expects from a JavaScript host, and errors with explanations for those that are not available.
(native, realm) => {
  const { global, latin1, wellFormed } = realm;

  const callbacks = new Map();
  const timerFunction = (repeats) => (callback, delay = 0, ...values) => {
    if (typeof callback !== "function") throw new TypeError("a timer needs a function to call");
    const timer = { callback, values, delay: Number(delay), repeats, native: 0 };
    timer.native = native.startTimer(timer.delay);
    const id = timer.native;
    timer.id = id;
    callbacks.set(id, timer);
    byNative.set(id, timer);
    return id;
  };
  const byNative = new Map();
  const clear = (id) => {
    const timer = callbacks.get(Number(id));
    if (!timer) return;
    native.stopTimer(timer.native);
    byNative.delete(timer.native);
    callbacks.delete(timer.id);
  };
  realm.fire = (id) => {
    const timer = byNative.get(id);
    if (!timer) return;
    byNative.delete(id);
    if (timer.repeats) {
      // At least one millisecond, as in browsers: otherwise an interval of 0 would block everything else.
      timer.native = native.startTimer(timer.delay >= 1 ? timer.delay : 1);
      byNative.set(timer.native, timer);
    } else {
      callbacks.delete(timer.id);
    }
    timer.callback.apply(undefined, timer.values);
  };
  global("setTimeout", timerFunction(false));
  global("setInterval", timerFunction(true));
  global("setImmediate", (callback, ...values) => globalThis.setTimeout(callback, 0, ...values));
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) global(name, clear);
  const resolved = Promise.resolve();
  const then = Function.prototype.call.bind(Promise.prototype.then);
  global("queueMicrotask", (callback) => {
    if (typeof callback !== "function") throw new TypeError("queueMicrotask needs a function to call");
    then(resolved, () => void callback());
  });
  global("performance", { now: () => native.now(), get timeOrigin() { return Date.now() - native.now(); } });

  const { random } = { random: () => native.random() };
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true });
  global("TextEncoder", class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return native.toUtf8(wellFormed(String(text)));
    }
  });
  global("TextDecoder", class TextDecoder {
    #fatal;
    #keepMark;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!/^utf-?8$/i.test(label)) throw new RangeError(`TextDecoder knows utf-8 only, not ${label}`);
      this.#fatal = Boolean(fatal);
      this.#keepMark = Boolean(ignoreBOM);
    }
    get encoding() {
      return "utf-8";
    }
    decode(bytes = new Uint8Array()) {
      const text = native.fromUtf8(latin1(bytes), this.#fatal);
      return !this.#keepMark && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
  });
  global("btoa", (text) => native.toBase64(wellFormed(String(text))));
  global("atob", (text) => latin1(native.fromBase64(wellFormed(String(text)))));

  const { defineProperty } = Object;
  const clone = (value, seen) => {
    if (typeof value === "function" || typeof value === "symbol") {
      throw new TypeError(`structuredClone cannot copy a ${typeof value}`);
    }
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    if (value instanceof Date) return keep(new Date(+value));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (value instanceof DataView) return keep(new DataView(clone(value.buffer, seen), value.byteOffset, value.byteLength));
    if (ArrayBuffer.isView(value)) return keep(value.slice());
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [key, item] of value) copy.set(clone(key, seen), clone(item, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const item of value) copy.add(clone(item, seen));
      return copy;
    }
    if (value instanceof Error) {
      const copy = keep(new Error(value.message));
      copy.name = value.name;
      copy.stack = value.stack;
      return copy;
    }
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) {
      const item = clone(value[key], seen);
      // An assignment would set the prototype instead.
      if (key === "__proto__") defineProperty(copy, key, { value: item, writable: true, enumerable: true, configurable: true });
      else copy[key] = item;
    }
    return copy;
  };
  global("structuredClone", (value) => clone(value, new Map()));

  const absent = (name, reason, instead) =>
    `${name} is not available in the Lockhouse sandbox: ${reason}; use ${instead} instead`;
  const noNetwork = (name) => new Error(absent(name, "there is no network", "a tool of an MCP server"));
  global("fetch", async function fetch() {
    throw noNetwork("fetch");
  });
  for (const name of ["XMLHttpRequest", "WebSocket", "EventSource"]) {
    const refused = {
      [name]: function () {
        throw noNetwork(name);
      },
    };
    global(name, refused[name]);
  }
  const { format, inspectWhole: inspect } = realm;
  const promisify = (call) => (...values) => new Promise((resolve, reject) => call(...values, (error, value) => (error ? reject(error) : resolve(value))));
  realm.standardModules.util = realm.standardModule("node:util", { format, inspect, promisify, TextDecoder, TextEncoder });
  global("require", (name) => realm.module(String(name)));
}
