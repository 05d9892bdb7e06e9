// Results of tools that were JSON text: objects and arrays that know the text that the server sent.
//
// A program uses them as values. Where text is needed, it gets the server's own text: from `rawText`, from `String` as long
// as the value is unchanged, and in an argument that must be a string (the supervisor decides that, since it has the schemas).
(native, realm) => {
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { SyntaxError, RangeError } = globalThis;
  const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
  const { create, defineProperty, keys, setPrototypeOf } = Object;
  const unbound = (method) => Function.prototype.call.bind(method);
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

  // Integers that a number cannot hold become text, as in results of programs.
  const parseResult = (text) => parse(/\d{16}/.test(text) ? native.quoteLargeIntegers(wellFormed(text)) : text);

  // The text of a decoded value; null if the program has changed the value.
  const unchangedText = (value) => {
    const text = getText(texts, value);
    try {
      return realm.encode(value) === realm.encode(parseResult(text)) ? text : null;
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
    if (!/^[ \t\r\n]*(?:[[{]|null[ \t\r\n]*$)/.test(text)) return text;
    let value;
    try {
      value = parseResult(text);
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
      return typeof text === "object" && text !== null && isDecoded(text) && !reviver ? text : parse(text, reviver);
    },
  }.parse;
  for (const name of ["rawText", "raw_text"]) {
    defineProperty(globalThis, name, { value: rawText, configurable: true, writable: true, enumerable: false });
  }
  Object.assign(realm, { decode, isDecoded, rawText, textsIn });
}
