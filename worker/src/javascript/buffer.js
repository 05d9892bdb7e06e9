// Bytes as in Node.js: the global `Buffer` and the module `node:buffer`.
(native, realm) => {
  const { global, latin1, wellFormed } = realm;
  const { isView } = ArrayBuffer;
  const { ArrayBuffer: Memory, DataView, SharedArrayBuffer, TypeError, RangeError, Uint8Array } = globalThis;

  const fromCodes = (text, mask) => Uint8Array.from(text, (letter) => letter.charCodeAt(0) & mask);
  const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  // Like Node.js, reads what it can, and ignores the rest.
  const fromBase64 = (text) => {
    const digits = text.replace(/=[^]*$/, "").replace(/[^A-Za-z0-9+/_-]/g, "");
    return native.fromBase64(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  };
  const fromUtf16 = (text) => {
    const bytes = new DataView(new Memory(text.length * 2));
    for (let at = 0; at < text.length; at++) bytes.setUint16(at * 2, text.charCodeAt(at), true);
    return new Uint8Array(bytes.buffer);
  };
  const toUtf16 = (bytes) => {
    let text = "";
    for (let at = 0; at + 1 < bytes.length; at += 2) text += String.fromCharCode(bytes[at] | (bytes[at + 1] << 8));
    return text;
  };
  const toBase64 = (bytes) => native.toBase64(latin1(bytes));
  const ENCODINGS = {
    utf8: [(text) => native.toUtf8(wellFormed(text)), (bytes) => native.fromUtf8(latin1(bytes), false)],
    base64: [fromBase64, toBase64],
    base64url: [fromBase64, (bytes) => toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")],
    hex: [(text) => Uint8Array.from(/^(?:[0-9a-f]{2})*/i.exec(text)[0].match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)), hexOf],
    latin1: [(text) => fromCodes(text, 255), latin1],
    ascii: [(text) => fromCodes(text, 255), (bytes) => latin1(bytes.map((byte) => byte & 127))],
    utf16le: [fromUtf16, toUtf16],
  };
  const SYNONYMS = { "utf-8": "utf8", binary: "latin1", "utf-16le": "utf16le", ucs2: "utf16le", "ucs-2": "utf16le" };
  const encodingOf = (encoding) => {
    const given = String(encoding).toLowerCase();
    const name = Object.hasOwn(SYNONYMS, given) ? SYNONYMS[given] : given;
    if (Object.hasOwn(ENCODINGS, name)) return ENCODINGS[name];
    throw Object.assign(new TypeError(`Unknown encoding: ${encoding}`), { code: "ERR_UNKNOWN_ENCODING" });
  };
  const encodeText = (text, encoding = "utf8") => encodingOf(encoding ?? "utf8")[0](text);
  const decodeBytes = (bytes, encoding = "utf8") => encodingOf(encoding ?? "utf8")[1](bytes);

  const invalid = (name, value, kinds) => {
    const shown = value === null ? "null" : typeof value;
    return Object.assign(new TypeError(`The "${name}" argument must be of type ${kinds}. Received ${shown}`), { code: "ERR_INVALID_ARG_TYPE" });
  };
  const outside = (words) => Object.assign(new RangeError(words), { code: "ERR_OUT_OF_RANGE" });
  const isMemory = (value) => value instanceof Memory || value instanceof SharedArrayBuffer;
  // The bytes of a value, which share its memory.
  const bytesOf = (value, encoding, name = "data") => {
    if (typeof value === "string") return encodeText(value, encoding);
    if (isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (isMemory(value)) return new Uint8Array(value);
    throw invalid(name, value, "string, or bytes as Uint8Array");
  };
  const asBuffer = (bytes) => Object.setPrototypeOf(bytes, Buffer.prototype);

  class Buffer extends Uint8Array {
    constructor(first, ...others) {
      if (typeof first === "string") throw new TypeError("new Buffer(text) is not available in the Lockhouse sandbox: use Buffer.from(text) instead");
      super(first, ...others);
    }
    static from(value, second, third) {
      if (typeof value === "string") return asBuffer(encodeText(value, second));
      if (isMemory(value)) return new Buffer(value, second, third);
      if (typeof value !== "object" || value === null) throw invalid("first", value, "string, bytes, or an array of numbers");
      if (value.type === "Buffer" && Array.isArray(value.data)) return Buffer.from(value.data);
      const primitive = value.valueOf?.();
      if (primitive !== value && typeof primitive === "string") return Buffer.from(primitive, second);
      return asBuffer(Uint8Array.from(value));
    }
    static of(...bytes) {
      return Buffer.from(bytes);
    }
    static alloc(size, fill = 0, encoding = "utf8") {
      if (typeof size !== "number") throw invalid("size", size, "number");
      const made = new Buffer(size);
      return fill === 0 ? made : made.fill(fill, encoding);
    }
    static allocUnsafe(size) {
      return Buffer.alloc(size);
    }
    static concat(list, total) {
      const parts = Array.from(list, (part) => bytesOf(part, undefined, "list"));
      const made = new Buffer(total ?? parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        made.set(part.subarray(0, made.length - at), at);
        at = Math.min(made.length, at + part.length);
      }
      return made;
    }
    static byteLength(value, encoding) {
      if (typeof value !== "string") return bytesOf(value, encoding, "string").length;
      // Like Node.js, does not look for letters that are no digits.
      const kind = encodingOf(encoding ?? "utf8");
      if (kind === ENCODINGS.hex) return value.length >>> 1;
      if (kind === ENCODINGS.base64 || kind === ENCODINGS.base64url) return (value.replace(/={1,2}$/, "").length * 3) >>> 2;
      return kind[0](value).length;
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static isEncoding(encoding) {
      const given = String(encoding).toLowerCase();
      return Object.hasOwn(ENCODINGS, given) || Object.hasOwn(SYNONYMS, given);
    }
    static compare(left, right) {
      const [a, b] = [bytesOf(left), bytesOf(right)];
      for (let at = 0; at < a.length && at < b.length; at++) if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    get parent() {
      return this.buffer;
    }
    get offset() {
      return this.byteOffset;
    }
    toString(encoding, start = 0, end = this.length) {
      const isWhole = start === 0 && end === this.length;
      return decodeBytes(isWhole ? this : this.subarray(Math.max(0, start), Math.max(0, end)), encoding);
    }
    toLocaleString(encoding) {
      return this.toString(encoding);
    }
    toJSON() {
      return { type: "Buffer", data: Array.from(this) };
    }
    equals(other) {
      return Buffer.compare(this, other) === 0;
    }
    compare(other) {
      return Buffer.compare(this, other);
    }
    // Unlike that of Uint8Array, it shares the memory.
    slice(start, end) {
      return this.subarray(start, end);
    }
    write(text, ...more) {
      const encoding = typeof more.at(-1) === "string" ? more.pop() : "utf8";
      const [offset = 0, length = this.length - offset] = more;
      const bytes = encodeText(String(text), encoding);
      const room = Math.min(length, this.length - offset);
      let count = Math.min(bytes.length, room);
      // A character that does not fit as a whole is not written.
      if (encodingOf(encoding) === ENCODINGS.utf8) while (count > 0 && count < bytes.length && (bytes[count] & 0xc0) === 0x80) count--;
      this.set(bytes.subarray(0, count), offset);
      return count;
    }
    copy(target, targetStart = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + Math.max(0, target.length - targetStart)));
      target.set(part, targetStart);
      return part.length;
    }
    fill(value, ...more) {
      const encoding = typeof more.at(-1) === "string" ? more.pop() : "utf8";
      if (typeof value === "number") return super.fill(value & 255, ...more);
      const bytes = bytesOf(value, encoding, "value");
      const [start = 0, end = this.length] = more;
      if (bytes.length === 0) return super.fill(0, start, end);
      for (let at = start; at < end; at++) this[at] = bytes[(at - start) % bytes.length];
      return this;
    }
    indexOf(value, from = 0, encoding) {
      if (typeof value === "number") return super.indexOf(value & 255, from);
      if (typeof from === "string") return this.indexOf(value, 0, from);
      return latin1(this).indexOf(latin1(bytesOf(value, encoding, "value")), from < 0 ? this.length + from : from);
    }
    lastIndexOf(value, from = Infinity, encoding) {
      if (typeof value === "number") return super.lastIndexOf(value & 255, from === Infinity ? this.length - 1 : from);
      return latin1(this).lastIndexOf(latin1(bytesOf(value, encoding, "value")), from < 0 ? this.length + from : from);
    }
    includes(value, from, encoding) {
      return this.indexOf(value, from, encoding) >= 0;
    }
  }

  // readUInt16LE and the like, on top of DataView.
  const viewOf = (buffer, offset, size) => {
    if (!(offset >= 0 && offset + size <= buffer.length)) throw outside(`The value of "offset" is out of range. It must be >= 0 and <= ${buffer.length - size}. Received ${offset}`);
    return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  };
  const numberKinds = { UInt8: "Uint8", Int8: "Int8", UInt16: "Uint16", Int16: "Int16", UInt32: "Uint32", Int32: "Int32", BigUInt64: "BigUint64", BigInt64: "BigInt64", Float: "Float32", Double: "Float64" };
  for (const [name, kind] of Object.entries(numberKinds)) {
    const size = Number(/\d+$/.exec(kind)[0]) / 8;
    const limit = 2 ** (size * 8);
    const [least, most] = kind.startsWith("Float") || size === 8 ? [-Infinity, Infinity] : kind.startsWith("U") ? [0, limit - 1] : [-limit / 2, limit / 2 - 1];
    for (const order of size === 1 ? [""] : ["LE", "BE"]) {
      const methods = {
        [`read${name}${order}`](offset = 0) {
          return viewOf(this, offset, size)[`get${kind}`](offset, order === "LE");
        },
        [`write${name}${order}`](value, offset = 0) {
          if (value < least || value > most) throw outside(`The value of "value" is out of range. It must be >= ${least} and <= ${most}. Received ${value}`);
          viewOf(this, offset, size)[`set${kind}`](offset, value, order === "LE");
          return offset + size;
        },
      };
      for (const [key, value] of Object.entries(methods)) {
        for (const spelling of new Set([key, key.replace("UInt", "Uint")])) Object.defineProperty(Buffer.prototype, spelling, { value, writable: true, configurable: true });
      }
    }
  }

  Object.assign(realm, { Buffer, asBuffer, bytesOf, decodeBytes });
  global("Buffer", Buffer);
  realm.standardModules.buffer = realm.standardModule("node:buffer", { Buffer, atob: (text) => globalThis.atob(text), btoa: (text) => globalThis.btoa(text) });
}
