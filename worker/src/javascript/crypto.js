// The global `crypto` and the module `node:crypto`: random values and hash functions.
(native, realm) => {
  const { asBuffer, bytesOf, decodeBytes, global, latin1 } = realm;
  const { isView } = ArrayBuffer;
  const { Error, RangeError, TypeError, Uint8Array } = globalThis;
  const RANDOM_BYTES_MAX = 65536;
  const ALGORITHMS = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

  const fillRandom = (bytes) => {
    for (let at = 0; at < bytes.length; at += RANDOM_BYTES_MAX) {
      bytes.set(native.randomBytes(Math.min(RANDOM_BYTES_MAX, bytes.length - at)), at);
    }
    return bytes;
  };
  const getRandomValues = (array) => {
    if (!isView(array)) throw new TypeError("getRandomValues fills a typed array");
    if (array.byteLength > RANDOM_BYTES_MAX) throw new RangeError(`getRandomValues gives at most ${RANDOM_BYTES_MAX} bytes at once`);
    fillRandom(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  };
  const randomUUID = () => {
    const bytes = native.randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return decodeBytes(bytes, "hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };

  const missing = (name) =>
    new Error(`${name} is not available in the Lockhouse sandbox: there is no cryptography except hash functions; use createHash and createHmac of node:crypto, or Python's hashlib and hmac instead`);
  const subtle = {
    async digest(algorithm, data) {
      const name = String(algorithm?.name ?? algorithm).toUpperCase();
      if (!/^SHA-(1|256|384|512)$/.test(name)) throw Object.assign(new Error(`Unrecognized algorithm name: ${name}: crypto.subtle.digest has SHA-1, SHA-256, SHA-384 and SHA-512`), { name: "NotSupportedError" });
      if (typeof data === "string") throw new TypeError("crypto.subtle.digest takes bytes: use new TextEncoder().encode(text)");
      return native.digest(name.toLowerCase().replace("-", ""), latin1(bytesOf(data))).buffer;
    },
  };
  for (const name of ["encrypt", "decrypt", "sign", "verify", "generateKey", "deriveKey", "deriveBits", "importKey", "exportKey", "wrapKey", "unwrapKey"]) {
    subtle[name] = async () => {
      throw missing(`crypto.subtle.${name}`);
    };
  }
  const web = { getRandomValues, randomUUID, subtle };
  global("crypto", web);

  const algorithmOf = (name) => {
    const plain = String(name).toLowerCase().replace(/^rsa-/, "").replace("-", "");
    if (ALGORITHMS.includes(plain)) return plain;
    throw new Error(`Digest method not supported: ${name}: the Lockhouse sandbox has ${ALGORITHMS.join(", ")}`);
  };
  class Hash {
    #finish;
    #parts;
    constructor(finish, parts = []) {
      this.#finish = finish;
      this.#parts = parts;
    }
    #all() {
      if (this.#parts === undefined) throw Object.assign(new Error("Digest already called"), { code: "ERR_CRYPTO_HASH_FINALIZED" });
      return this.#parts;
    }
    update(data, encoding) {
      this.#all().push(latin1(bytesOf(data, encoding)));
      return this;
    }
    copy() {
      return new Hash(this.#finish, [...this.#all()]);
    }
    digest(encoding) {
      const bytes = asBuffer(this.#finish(this.#all().join("")));
      this.#parts = undefined;
      return encoding === undefined || encoding === "buffer" ? bytes : decodeBytes(bytes, encoding);
    }
  }
  const createHash = (algorithm) => {
    const name = algorithmOf(algorithm);
    return new Hash((data) => native.digest(name, data));
  };
  const createHmac = (algorithm, key) => {
    const [name, secret] = [algorithmOf(algorithm), latin1(bytesOf(key, undefined, "key"))];
    return new Hash((data) => native.hmac(name, secret, data));
  };
  const hash = (algorithm, data, encoding = "hex") => createHash(algorithm).update(data).digest(encoding);
  const randomBytes = (size, done) => {
    const bytes = asBuffer(fillRandom(new Uint8Array(size)));
    if (typeof done !== "function") return bytes;
    Promise.resolve(bytes).then((value) => done(null, value));
  };
  const randomInt = (first, second) => {
    const [least, end] = typeof second === "number" ? [first, second] : [0, first];
    if (!Number.isSafeInteger(least) || !Number.isSafeInteger(end) || end <= least || end - least > 2 ** 48) {
      throw new RangeError(`The value of "max" is out of range. It must be greater than the value of "min" (${least}). Received ${end}`);
    }
    const range = end - least;
    // Values beyond the last multiple of the range would make some results more frequent.
    const limit = 2 ** 48 - (2 ** 48 % range);
    for (;;) {
      const value = native.randomBytes(6).reduce((sum, byte) => sum * 256 + byte, 0);
      if (value < limit) return least + (value % range);
    }
  };
  const timingSafeEqual = (left, right) => {
    const [a, b] = [bytesOf(left), bytesOf(right)];
    if (a.length !== b.length) throw new RangeError("Input buffers must have the same byte length");
    let difference = 0;
    for (let at = 0; at < a.length; at++) difference |= a[at] ^ b[at];
    return difference === 0;
  };
  realm.standardModules.crypto = realm.standardModule(
    "node:crypto",
    { createHash, createHmac, getHashes: () => [...ALGORITHMS], getRandomValues, hash, randomBytes, randomInt, randomUUID, subtle, timingSafeEqual, webcrypto: web },
    ", where there is no cryptography except hash functions",
  );
}
