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
  global("crypto", {
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array)) throw new TypeError("getRandomValues fills a typed array");
      if (array.byteLength > 65536) throw new RangeError("getRandomValues gives at most 65536 bytes at once");
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native.randomBytes(array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = native.randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  });

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

  const decode = (text) => decodeURIComponent(text.replaceAll("+", " "));
  const encode = (text) => encodeURIComponent(text).replaceAll("%20", "+");
  global("URLSearchParams", class URLSearchParams {
    #pairs = [];
    constructor(from = "") {
      if (typeof from !== "object") {
        for (const part of String(from).replace(/^\?/, "").split("&")) {
          const at = part.indexOf("=");
          if (part) this.append(decode(at < 0 ? part : part.slice(0, at)), at < 0 ? "" : decode(part.slice(at + 1)));
        }
      } else {
        for (const [name, value] of from[Symbol.iterator] ? from : Object.entries(from)) this.append(name, value);
      }
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
    }
    delete(name) {
      this.#pairs = this.#pairs.filter(([other]) => other !== name);
    }
    get(name) {
      return this.#pairs.find(([other]) => other === name)?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([other]) => other === name).map(([, value]) => value);
    }
    has(name) {
      return this.#pairs.some(([other]) => other === name);
    }
    set(name, value) {
      const pair = this.#pairs.find(([other]) => other === name);
      if (!pair) return this.append(name, value);
      pair[1] = String(value);
      this.#pairs = this.#pairs.filter((other) => other === pair || other[0] !== name);
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    }
    forEach(callback) {
      for (const [name, value] of this.#pairs) callback(value, name, this);
    }
    keys() {
      return this.#pairs.map(([name]) => name).values();
    }
    values() {
      return this.#pairs.map(([, value]) => value).values();
    }
    entries() {
      return this.#pairs.map((pair) => [...pair]).values();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
    }
  });

  realm.URLSearchParams = URLSearchParams;

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
  Object.defineProperty(crypto, "subtle", {
    get() {
      throw new Error(absent("crypto.subtle", "there is no cryptography", "Python's hashlib and hmac"));
    },
  });

  // Without Intl, the engine would silently ignore locales and options.
  const { warn } = console;
  let hasWarned = false;
  const localized = (prototype, name, given) => {
    const original = prototype[name];
    const wrapper = {
      [name](...values) {
        const [locales, options] = values.slice(given);
        if (options?.timeZone !== undefined && !/^(UTC|GMT|Etc\/UTC)$/i.test(options.timeZone)) {
          throw new RangeError(absent(`timeZone ${options.timeZone}`, "there are no time zones", "Python's zoneinfo"));
        }
        if ((locales !== undefined || options !== undefined) && !hasWarned) {
          hasWarned = true;
          warn(absent(`${name} with locales or options`, "Intl is missing", "toFixed, padStart and toISOString"));
        }
        return original.apply(this, values);
      },
    };
    Object.defineProperty(prototype, name, { value: wrapper[name], writable: true, configurable: true });
  };
  for (const { prototype } of [Number, BigInt, Array]) localized(prototype, "toLocaleString", 0);
  for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) localized(Date.prototype, name, 0);
  localized(String.prototype, "localeCompare", 1);
  global("require", (name) => realm.module(String(name)));
}
