// Values on their way out: JSON that keeps as much as JSON can hold.
(native, realm) => {
  // The names of a session's programs.
  realm.scope = Object.create(null);
  realm.declare = (...names) => {
    for (const name of names) if (!(name in realm.scope)) realm.scope[name] = undefined;
  };

  const { stringify } = JSON;
  const { isArray } = Array;
  const { getPrototypeOf, create } = Object;
  const { isView } = ArrayBuffer;
  const fromCharCode = String.fromCharCode;
  const unbound = (method) => Function.prototype.call.bind(method);
  const wellFormed = unbound(String.prototype.toWellFormed);
  const slice = unbound(String.prototype.slice);
  const objectPrototype = Object.prototype;

  // The characters U+0000 to U+00FF that stand for bytes.
  const latin1 = (source) => {
    const bytes = isView(source)
      ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source);
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) {
      text += fromCharCode.apply(null, bytes.subarray(at, at + 8192));
    }
    return text;
  };

  const isBytes = (value) =>
    value instanceof Uint8Array || value instanceof ArrayBuffer || value instanceof Uint8ClampedArray ||
    value instanceof DataView;

  const fromMap = (map) => {
    const entries = [...map];
    if (!entries.every(([key]) => typeof key === "string" || typeof key === "number")) return entries;
    const object = create(null);
    for (const [key, value] of entries) object[key] = value;
    return object;
  };

  const fromObject = (value) => {
    if (value instanceof Map) return fromMap(value);
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return { name: value.name, message: value.message, ...value };
    if (isBytes(value)) return { base64: native.toBase64(latin1(value)) };
    if (isView(value)) return Array.from(value);
    if (value instanceof RegExp) return String(value);
    if (value instanceof Promise) return "[Promise: use await]";
    return realm.serverName(value) ?? value;
  };

  const plain = (key, value) => {
    switch (typeof value) {
      case "object": {
        if (value === null || isArray(value)) return value;
        const prototype = getPrototypeOf(value);
        return prototype === objectPrototype || prototype === null ? value : fromObject(value);
      }
      case "number":
        return value - value === 0 ? value : `${value}`;
      case "bigint":
        return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : `${value}`;
      case "function":
        return realm.serverName(value) ?? `[Function: ${value.name || "anonymous"}]`;
      case "symbol":
        return String(value);
      default:
        return value;
    }
  };

  // For arguments: what has no form in JSON is a slip there, where a result is better described than refused.
  const strict = (key, value) => {
    const slip = (what) => new TypeError(`${what} cannot be passed to a tool${key ? ` (${key})` : ""}`);
    if (typeof value === "function" || typeof value === "symbol") throw slip(`a ${typeof value}`);
    if (value instanceof Promise) throw slip("a Promise without await");
    return plain(key, value);
  };

  // JSON of a value; undefined when there is nothing to say.
  realm.encode = (value, isArgument = false) => {
    try {
      return stringify(value, isArgument ? strict : plain);
    } catch (error) {
      if (error instanceof TypeError && /circular/.test(error.message)) {
        throw new TypeError("the value is cyclic, and JSON cannot hold that: pass on the parts that matter");
      }
      if (error instanceof RangeError && /call stack/.test(error.message)) {
        throw new RangeError("the value is cyclic or nested too deeply for JSON: pass on the parts that matter");
      }
      throw error;
    }
  };

  // Text that is valid in UTF-8, of bounded length; null for what is no text.
  realm.clip = (value) => (typeof value === "string" ? wellFormed(slice(value, 0, 4096)) : null);
  realm.global = (name, value) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
  realm.latin1 = latin1;
  realm.wellFormed = wellFormed;
}
