// `Intl`, and the functions of the language that take locales. The formats themselves are native functions.
(native, realm) => {
  const { global, wellFormed } = realm;
  const { create, defineProperty, is, setPrototypeOf } = Object;
  const { isArray } = Array;
  const { Array: Arrays, BigInt, Date, Number, RangeError, String, TypeError } = globalThis;
  const unbound = (method) => Function.prototype.call.bind(method);
  const [getState, setState] = [unbound(WeakMap.prototype.get), unbound(WeakMap.prototype.set)];
  const [numberValue, bigIntValue, timeValue] = [unbound(Number.prototype.valueOf), unbound(BigInt.prototype.valueOf), unbound(Date.prototype.getTime)];
  const test = unbound(RegExp.prototype.test);
  const join = unbound(Arrays.prototype.join);
  const now = Date.now;
  const DEFAULT = "en-US";
  const DIGITS = /^\s*[+-]?\d+(\.\d*)?\s*$/;
  // Languages with their own rules for capital letters.
  const OTHER_LETTERS = /^(tr|az|lt|el|hy)\b/i;

  // How each option becomes a text. Options with other names are ignored, as in ECMA-402.
  const text = (value) => wellFormed(String(value));
  const number = (value) => `${Number(value)}`;
  const boolean = (value) => (value ? "true" : "false");
  const grouping = (value) => (value === true ? "always" : value ? text(value) : "never");
  const kinds = (kind, names) => names.map((name) => [name, kind]);
  const NUMBER_OPTIONS = [
    ...kinds(text, ["numberingSystem", "style", "currency", "currencyDisplay", "currencySign", "unit", "unitDisplay", "notation", "compactDisplay", "signDisplay"]),
    ...kinds(text, ["roundingMode", "roundingPriority", "trailingZeroDisplay"]),
    ...kinds(number, ["minimumIntegerDigits", "minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits", "roundingIncrement"]),
    ["useGrouping", grouping],
  ];
  const DATE_OPTIONS = [
    ...kinds(text, ["calendar", "numberingSystem", "hourCycle", "timeZone", "weekday", "era", "year", "month", "day", "dayPeriod", "hour", "minute", "second"]),
    ...kinds(text, ["timeZoneName", "dateStyle", "timeStyle"]),
    ["hour12", boolean],
    ["fractionalSecondDigits", number],
  ];
  const COLLATOR_OPTIONS = [...kinds(text, ["usage", "collation", "sensitivity", "caseFirst"]), ...kinds(boolean, ["ignorePunctuation", "numeric"])];
  const read = (options, names, service) => {
    const made = create(null);
    if (options === undefined) return made;
    if (options === null) throw new TypeError(`${service} called on null or undefined`);
    for (const [name, kind] of names) {
      const value = options[name];
      if (value !== undefined) made[name] = kind(value);
    }
    return made;
  };
  const tagOf = (locales) => {
    if (locales === undefined) return DEFAULT;
    if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
    if (typeof locales === "string") return locales;
    if (typeof locales !== "object" || !locales.length) return DEFAULT;
    if (typeof locales[0] !== "string") throw new TypeError("Incorrect locale information provided");
    return locales[0];
  };

  // Opens a format: [format, parts, resolved options]. Formats without options are kept, since programs use them in loops.
  const opener = (nativeOpen, names) => {
    const kept = create(null);
    return (service, locales, options, defaults) => {
      const tag = tagOf(locales);
      const key = options === undefined && tag === DEFAULT ? (defaults ?? "plain") : undefined;
      if (key !== undefined && kept[key]) return kept[key];
      const texts = read(options, names, service);
      if (defaults !== undefined) texts.defaults = defaults;
      const opened = nativeOpen(wellFormed(tag), texts, service);
      if (key !== undefined) kept[key] = opened;
      return opened;
    };
  };
  const openNumber = opener(native.numberFormat, NUMBER_OPTIONS);
  const openDate = opener(native.dateFormat, DATE_OPTIONS);
  const openCollator = opener(native.collator, COLLATOR_OPTIONS);

  // A number as the native functions read it: exact for a BigInt and for digits in a string.
  const numberText = (value) => {
    if (typeof value === "bigint") return `${value}`;
    if (typeof value === "string" && test(DIGITS, value)) return value.trim();
    const given = Number(value);
    return is(given, -0) ? "-0" : `${given}`;
  };
  const toParts = (flat) => {
    const parts = [];
    for (let at = 0; at < flat.length; at += 2) parts[at / 2] = { type: flat[at], value: flat[at + 1] };
    return parts;
  };
  const dateNumber = (date) => (date === undefined ? now() : Number(date));

  const absent = (name, instead) => new RangeError(`${name} is not available in the Lockhouse sandbox: ${instead}`);
  const hidden = (target, name, value) => defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
  // A class of Intl, which can be called without `new`.
  const states = new WeakMap();
  const service = (name, open, getter, methods) => {
    const full = `Intl.${name}`;
    const made = {
      [name]: function (locales, options) {
        const self = new.target ? this : create(made.prototype);
        setState(states, self, open(full, locales, options));
        return self;
      },
    }[name];
    const stateOf = (self) => {
      const state = getState(states, self);
      if (!state) throw new TypeError(`the receiver is no ${full}`);
      return state;
    };
    const { prototype } = made;
    defineProperty(prototype, Symbol.toStringTag, { value: full, configurable: true });
    const [getterName, call] = getter;
    defineProperty(prototype, getterName, {
      get() {
        const state = stateOf(this);
        return (state.bound ??= (...values) => call(state, ...values));
      },
      configurable: true,
      enumerable: false,
    });
    for (const [key, method] of Object.entries(methods)) {
      hidden(prototype, key, { [key](...values) { return method(stateOf(this), ...values); } }[key]);
    }
    hidden(prototype, "resolvedOptions", function resolvedOptions() {
      return { ...stateOf(this)[2] };
    });
    hidden(made, "supportedLocalesOf", function supportedLocalesOf(locales) {
      return canonical(locales).filter(isKnown);
    });
    return made;
  };
  const listOf = (locales) => (locales === undefined ? [] : isArray(locales) ? locales : [locales]);
  const isKnown = (tag) => {
    try {
      return native.findLocale(wellFormed(tag)) !== undefined;
    } catch {
      return false;
    }
  };
  const canonical = (locales) => listOf(locales).map((tag) => (isKnown(tag) ? native.findLocale(tag) : String(tag)));
  const ranges = (name) => () => {
    throw absent(name, "format both ends, and put them together in the program");
  };

  const NumberFormat = service("NumberFormat", openNumber, ["format", ([format], value) => format(numberText(value))], {
    formatToParts: ([, parts], value) => toParts(parts(numberText(value))),
    formatRange: ranges("formatRange"),
    formatRangeToParts: ranges("formatRangeToParts"),
  });
  const DateTimeFormat = service(
    "DateTimeFormat",
    (...given) => {
      const opened = openDate(...given);
      const { fractionalSecondDigits: digits, hourCycle } = opened[2];
      if (typeof digits === "string") opened[2].fractionalSecondDigits = Number(digits);
      if (hourCycle) opened[2].hour12 = hourCycle === "h11" || hourCycle === "h12";
      return opened;
    },
    ["format", ([format], date) => format(dateNumber(date))],
    {
      formatToParts: ([, parts], date) => toParts(parts(dateNumber(date))),
      formatRange: ranges("formatRange"),
      formatRangeToParts: ranges("formatRangeToParts"),
    },
  );
  const Collator = service("Collator", openCollator, ["compare", ([compare], left, right) => compare(text(left), text(right))], {});
  const Intl = create(Object.prototype, { [Symbol.toStringTag]: { value: "Intl", configurable: true } });
  for (const value of [NumberFormat, DateTimeFormat, Collator]) hidden(Intl, value.name, value);
  for (const name of ["DisplayNames", "DurationFormat", "ListFormat", "Locale", "PluralRules", "RelativeTimeFormat", "Segmenter"]) {
    const missing = {
      [name]: function () {
        throw absent(`Intl.${name}`, "it has Intl.NumberFormat, Intl.DateTimeFormat and Intl.Collator; write the words in the program instead");
      },
    };
    hidden(Intl, name, missing[name]);
  }
  hidden(Intl, "getCanonicalLocales", canonical);
  hidden(Intl, "supportedValuesOf", () => {
    throw absent("Intl.supportedValuesOf", "time zones are those of IANA, and currencies those of ISO 4217");
  });
  global("Intl", Intl);

  // The functions of the language that take locales.
  const method = (prototype, name, call) => hidden(prototype, name, { [name](...values) { return call(this, ...values); } }[name]);
  method(Number.prototype, "toLocaleString", (value, locales, options) => {
    const given = numberText(numberValue(value));
    return openNumber("Number.prototype.toLocaleString", locales, options)[0](given);
  });
  method(BigInt.prototype, "toLocaleString", (value, locales, options) => {
    const given = `${bigIntValue(value)}`;
    return openNumber("BigInt.prototype.toLocaleString", locales, options)[0](given);
  });
  for (const [name, defaults] of [["toLocaleString", "dateAndTime"], ["toLocaleDateString", "dateAlways"], ["toLocaleTimeString", "timeAlways"]]) {
    method(Date.prototype, name, (date, locales, options) => {
      const milliseconds = timeValue(date);
      const [format] = openDate(`Date.prototype.${name}`, locales, options, defaults);
      return milliseconds === milliseconds ? format(milliseconds) : "Invalid Date";
    });
  }
  const listText = (list, locales, options) => {
    const texts = [];
    for (let at = 0; at < list.length; at++) texts[at] = list[at] === undefined || list[at] === null ? "" : String(list[at].toLocaleString(locales, options));
    return join(texts, ",");
  };
  method(Arrays.prototype, "toLocaleString", listText);
  method(Object.getPrototypeOf(Uint8Array.prototype), "toLocaleString", listText);
  method(String.prototype, "localeCompare", (left, right, locales, options) => {
    if (left === undefined || left === null) throw new TypeError("String.prototype.localeCompare called on null or undefined");
    return openCollator("String.prototype.localeCompare", locales, options)[0](text(left), text(right));
  });
  for (const [name, plain] of [["toLocaleUpperCase", "toUpperCase"], ["toLocaleLowerCase", "toLowerCase"]]) {
    const convert = unbound(String.prototype[plain]);
    method(String.prototype, name, (value, locales) => {
      const tag = tagOf(locales);
      if (test(OTHER_LETTERS, tag)) throw absent(`${name} for ${text(tag)}`, "it has the letters of other languages; replace the special letters in the program");
      return convert(value);
    });
  }
}
