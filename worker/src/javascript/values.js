// Converts results and arguments to JSON.
(native, realm) => {
  // Variables of the session.
  realm.scope = Object.create(null);
  realm.declare = (...names) => {
    for (const name of names) if (!(name in realm.scope)) realm.scope[name] = undefined;
  };

  const { isDecoded } = realm;
  const { stringify, rawJSON, isRawJSON } = JSON;
  const { isInteger, isSafeInteger } = Number;
  const { isArray } = Array;
  const { DataView, Date, Error, Iterator, Map, Promise, RegExp, Set, Uint8Array, Uint8ClampedArray, WeakMap } = globalThis;
  const { getPrototypeOf, create, hasOwn, keys } = Object;
  const { isView } = ArrayBuffer;
  const fromCharCode = String.fromCharCode;
  const unbound = (method) => Function.prototype.call.bind(method);
  const toExponential = unbound(Number.prototype.toExponential);
  const wellFormed = unbound(String.prototype.toWellFormed);
  const slice = unbound(String.prototype.slice);
  const objectPrototype = Object.prototype;

  // Converts bytes to a string of the characters U+0000 to U+00FF.
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

  const DEPTH_MAX = 120;
  const ITERATED_MAX = 10000;

  const fromMap = (map) => {
    const entries = [...map];
    if (!entries.every(([key]) => typeof key === "string" || typeof key === "number")) return entries;
    const object = create(null);
    for (const [key, value] of entries) object[key] = value;
    return object;
  };
  // Reads an iterator, up to a maximum number of items. An iterator can be read only once.
  const readAlready = new WeakMap();
  const fromIterator = (iterator, isArgument) => {
    const items = readAlready.get(iterator) ?? [];
    if (items.length) return items;
    readAlready.set(iterator, items);
    for (const item of iterator) {
      if (items.length === ITERATED_MAX) {
        if (isArgument) throw new TypeError(`an iterator of more than ${ITERATED_MAX} items cannot be passed to a tool`);
        items.push("… more than 10,000 items: the rest of the iterator was not read …");
        break;
      }
      items.push(item);
    }
    return items;
  };
  const fromError = (error) => {
    const cause = hasOwn(error, "cause") ? { cause: error.cause } : {};
    return { name: error.name, message: error.message, ...error, ...cause };
  };
  // The supervisor treats bytes with a MIME type as a file.
  const isFile = (value) => typeof value.mimeType === "string" && isBytes(value.data);
  const fromFile = ({ data, mimeType, name }) => {
    const file = { base64: native.toBase64(latin1(data)), mime_type: mimeType };
    return typeof name === "string" ? { ...file, name } : file;
  };

  const fromObject = (value, isArgument) => {
    if (value instanceof Map) return fromMap(value);
    if (value instanceof Set) return [...value];
    if (value instanceof Error) return fromError(value);
    if (isBytes(value)) {
      const base64 = native.toBase64(latin1(value));
      return isArgument ? base64 : { base64 };
    }
    if (isView(value)) return Array.from(value);
    if (value instanceof RegExp || value instanceof realm.URLSearchParams) return String(value);
    if (value instanceof Promise) return "[Promise: use await]";
    if (value instanceof Iterator) return fromIterator(value, isArgument);
    return realm.serverName(value) ?? value;
  };

  // A number beyond 2^53 may have lost digits, so it has an exponent and does not look like an exact integer.
  const fromNumber = (value) => (isSafeInteger(value) || !isInteger(value) ? value : rawJSON(toExponential(value)));

  const jsonForm = (holder, key, value, isArgument) => {
    switch (typeof value) {
      case "object": {
        // `JSON.stringify` converts an invalid date to null before it calls the replacer.
        if (value === null) return holder[key] instanceof Date ? "Invalid Date" : value;
        if (isArray(value) || isRawJSON(value)) return value;
        // `JSON.stringify` has called toJSON.
        if (value.type === "Buffer" && holder[key] instanceof realm.Buffer) return fromObject(holder[key], isArgument);
        const prototype = getPrototypeOf(value);
        if (prototype !== objectPrototype && prototype !== null && !isDecoded(value)) return fromObject(value, isArgument);
        return !isArgument && isFile(value) ? fromFile(value) : value;
      }
      case "number":
        return value - value === 0 ? fromNumber(value) : `${value}`;
      case "bigint":
        return rawJSON(`${value}`);
      case "function":
        return realm.serverName(value) ?? `[Function: ${value.name || "anonymous"}]`;
      case "symbol":
        return String(value);
      default:
        return value;
    }
  };
  function plain(key, value) {
    return jsonForm(this, key, value, false);
  }

  // For arguments, values without a JSON form are errors; in results they are described instead.
  function strict(key, value) {
    const slip = (what) => new TypeError(`${what} cannot be passed to a tool${key ? ` (${key})` : ""}`);
    if (typeof value === "function" || typeof value === "symbol") throw slip(`a ${typeof value}`);
    if (value instanceof Promise) throw slip("a Promise without await");
    return jsonForm(this, key, value, true);
  }

  const tooDeep = () => new RangeError("the value is cyclic or nested too deeply for JSON: pass on the parts that matter");
  const TOO_DEEP = {};
  // Copies a value without what `JSON.stringify` rejects: cycles, and objects whose methods throw.
  const copyForJson = (holder, key, around) => {
    const level = around.length;
    try {
      let value = holder[key];
      if (typeof value?.toJSON === "function") value = value.toJSON(key);
      value = jsonForm(holder, key, value, false);
      if (typeof value !== "object" || value === null || isRawJSON(value)) return value;
      if (around.includes(value)) return "[Circular]";
      if (level === DEPTH_MAX) throw TOO_DEEP;
      around.push(value);
      const copy = isArray(value) ? [] : create(null);
      for (const name of isArray(value) ? value.keys() : keys(value)) copy[name] = copyForJson(value, name, around);
      around.pop();
      return copy;
    } catch (error) {
      if (error === TOO_DEEP) throw error;
      around.length = level;
      return `[${error?.name ?? typeof error} when it was read: ${error?.message ?? String(error)}]`;
    }
  };

  const explainError = (error) => {
    if (error instanceof TypeError && /circular/.test(error.message)) {
      return new TypeError("the value is cyclic, and JSON cannot hold that: pass on the parts that matter");
    }
    return error instanceof RangeError && /call stack/.test(error.message) ? tooDeep() : error;
  };

  // Encodes a value as JSON, as described in docs/values.md; undefined if there is nothing to encode.
  realm.encode = (value, isArgument = false) => {
    try {
      return stringify(value, isArgument ? strict : plain);
    } catch (error) {
      if (isArgument || error instanceof RangeError) throw explainError(error);
    }
    try {
      return stringify(copyForJson({ "": value }, "", []));
    } catch (error) {
      throw error === TOO_DEEP ? tooDeep() : explainError(error);
    }
  };

  // Shortens a text to a bounded length and makes it valid UTF-8; null if the value is no string.
  const clip = (value, head, tail) => {
    if (typeof value !== "string") return null;
    if (value.length <= head + tail) return wellFormed(value);
    const count = `${value.length - head - tail}`.replace(/\B(?=(\d{3})+$)/g, ",");
    return wellFormed(`${slice(value, 0, head)} … ${count} more characters … ${slice(value, -tail)}`);
  };
  realm.clip = (value) => clip(value, 2600, 1300);
  realm.clipMessage = (value) => clip(value, 660, 330);
  realm.global = (name, value) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
  realm.latin1 = latin1;
  realm.wellFormed = wellFormed;
}
