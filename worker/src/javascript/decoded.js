// Results of tools that were JSON text: objects and arrays that know the text that the server sent.
//
// A program uses them as values. Where text is needed, it gets the server's own text: from `rawText`, from `String` as long
// as the value is unchanged, and in an argument that must be a string (the supervisor decides that, since it has the schemas).
(native, realm) => {
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { SyntaxError, RangeError } = globalThis;
  const { create, defineProperty, keys, setPrototypeOf } = Object;
  const unbound = (method) => Function.prototype.call.bind(method);
  const call = Function.prototype.call.bind(Function.prototype.call);
  const [getText, setText, hasText] = [unbound(WeakMap.prototype.get), unbound(WeakMap.prototype.set), unbound(WeakMap.prototype.has)];
  const texts = new WeakMap();
  let anyDecoded = false;
  // Decoded results in the arguments of one call. The supervisor checks each against the schema.
  const ARGUMENTS_MAX = 64;

  const isDecoded = (value) => hasText(texts, value);
  const rawText = (value) => {
    if (typeof value === "string") return value;
    if (isDecoded(value)) return getText(texts, value);
    throw new TypeError("rawText takes a whole result of a tool that was text; for any other value use JSON.stringify(value)");
  };

  // Parses JSON so that no integer loses digits: those that a number cannot represent become a BigInt.
  const { isSafeInteger } = Number;
  const { BigInt } = globalThis;
  const matches = unbound(RegExp.prototype.test);
  const [manyDigits, onlyDigits] = [/\d{16}/, /^-?\d+$/];
  const exact = (value, context) =>
    typeof value === "number" && !isSafeInteger(value) && matches(onlyDigits, context.source) ? BigInt(context.source) : value;
  const parseExact = (text) => (matches(manyDigits, text) ? parse(text, (key, value, context) => exact(value, context)) : parse(text));

  // The text of a decoded value; null if the program has changed the value.
  const unchangedText = (value) => {
    const text = getText(texts, value);
    try {
      return realm.encode(value) === realm.encode(parseExact(text)) ? text : null;
    } catch {
      return null;
    }
  };
  const asText = (value) => (isDecoded(value) ? unchangedText(value) : null) ?? stringify(value);

  const methods = {
    json() {
      return this;
    },
    toString() {
      return asText(this);
    },
    [Symbol.toPrimitive](hint) {
      return hint === "number" ? NaN : asText(this);
    },
  };
  // Methods of strings whose names are hardly ever names of fields.
  const stringMethods = [
    "split", "trim", "trimStart", "trimEnd", "startsWith", "endsWith", "replace", "replaceAll", "substring", "substr", "charAt",
    "charCodeAt", "codePointAt", "toLowerCase", "toUpperCase", "indexOf", "padStart", "padEnd", "localeCompare", "matchAll",
  ];
  const refuse = () => {
    throw new TypeError("this result was JSON text and has been decoded; use rawText(value) for the text");
  };
  const createPrototype = (base) => {
    const prototype = create(base);
    const define = (name, descriptor) => defineProperty(prototype, name, { configurable: true, enumerable: false, ...descriptor });
    for (const name of Reflect.ownKeys(methods)) define(name, { value: methods[name], writable: true });
    for (const name of stringMethods) if (!(name in base)) define(name, { value: refuse, writable: true });
    // The setter keeps assignments possible: a program may add a field of this name.
    const set = function (value) {
      defineProperty(this, "text", { value, configurable: true, enumerable: true, writable: true });
    };
    define("text", { get() { return isDecoded(this) ? rawText(this) : undefined; }, set });
    return prototype;
  };
  const [objectPrototype, arrayPrototype] = [createPrototype(Object.prototype), createPrototype(Array.prototype)];

  // Decodes text that is, whole, a JSON object, array or null. Other text stays text.
  const decode = (text) => {
    // Sticky: without it, an expression that begins with `^` is tried at each place of a long text.
    if (!/[ \t\r\n]*(?:[[{]|null[ \t\r\n]*$)/y.test(text)) return text;
    let value;
    try {
      value = parseExact(text);
    } catch (error) {
      // It is no JSON, or nested too deeply. Any other error, such as too little memory, is not hidden.
      if (error instanceof SyntaxError || error instanceof RangeError) return text;
      throw error;
    }
    if (value === null) return null;
    setPrototypeOf(value, isArray(value) ? arrayPrototype : objectPrototype);
    setText(texts, value, text);
    anyDecoded = true;
    return value;
  };

  // The decoded results in the arguments of a call: pairs of JSON pointer and text, which is null for a changed value.
  const textsIn = (values) => {
    const found = [];
    const pending = anyDecoded ? [["", values]] : [];
    while (pending.length) {
      const [pointer, value] = pending.pop();
      if (typeof value !== "object" || value === null || isView(value)) continue;
      if (isDecoded(value)) {
        found.push([pointer, unchangedText(value)]);
        if (found.length > ARGUMENTS_MAX) {
          throw new RangeError(`more than ${ARGUMENTS_MAX} decoded results in one call: pass JSON.stringify(value) or rawText(value) for each`);
        }
      } else {
        for (const name of keys(value)) {
          pending.push([`${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, value[name]]);
        }
      }
    }
    return found;
  };

  JSON.parse = {
    parse(text, reviver) {
      if (typeof reviver === "function") {
        return parse(text, function (key, value, context) {
          return call(reviver, this, key, exact(value, context), context);
        });
      }
      return typeof text === "object" && text !== null && isDecoded(text) ? text : parseExact(`${text}`);
    },
  }.parse;
  // The digits of a BigInt, so that JSON that is read and written again stays the same.
  const { rawJSON } = JSON;
  defineProperty(BigInt.prototype, "toJSON", {
    value: { toJSON() { return rawJSON(`${this}`); } }.toJSON,
    configurable: true, enumerable: false, writable: true,
  });
  for (const name of ["rawText", "raw_text"]) {
    defineProperty(globalThis, name, { value: rawText, configurable: true, writable: true, enumerable: false });
  }
  Object.assign(realm, { decode, isDecoded, parseExact, rawText, textsIn });
  // The reply of a request that waits, parsed.
  const { ask } = native;
  native.ask = (...parts) => {
    const answer = ask(...parts);
    if (answer[2]) answer[1] = parseExact(answer[1]);
    return answer;
  };
}
