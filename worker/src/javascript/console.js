// The global `console`, with output formatted as in Node.js.
(native, realm) => {
  const WIDTH = 76;
  const ITEMS = 100;
  const DEPTH = 4;
  const { stackHere, textOf, wellFormed } = realm;
  const { isArray } = Array;
  const toIso = Function.prototype.call.bind(Date.prototype.toISOString);

  const quote = (text) => {
    const shown = text.length > 10000 ? `${text.slice(0, 10000)}… ${text.length - 10000} more characters` : text;
    const escaped = JSON.stringify(shown);
    return text.includes("'") ? escaped : `'${escaped.slice(1, -1).replaceAll('\\"', '"')}'`;
  };

  const showError = (error, depth, seen) => {
    const { name, message, stack } = error;
    const frames = native.frames(textOf(stack));
    const extra = Object.keys(error).filter((key) => key !== "stack" && error[key] !== undefined);
    const fields = extra.map((key) => `${key}: ${show(error[key], depth + 1, seen)}`).join(", ");
    const cause = Object.hasOwn(error, "cause") ? `\n  [cause]: ${show(error.cause, depth + 1, seen)}` : "";
    return `${name}: ${message}${frames && `\n${frames}`}${fields && ` { ${fields} }`}${cause}`;
  };

  // Puts short lists on one line, fills lines with short array items, and otherwise writes one item per line.
  const layOut = (prefix, open, items, close) => {
    if (items.length === 0) return `${prefix}${open}${close}`;
    const total = items.reduce((sum, item) => sum + item.length + 2, prefix.length + 4);
    if (total <= WIDTH && !items.some((item) => item.includes("\n"))) {
      return `${prefix}${open} ${items.join(", ")} ${close}`;
    }
    const lines = [];
    const fill = open === "[" && items.every((item) => item.length <= 16);
    for (const item of items) {
      const last = lines.length - 1;
      if (fill && last >= 0 && lines[last].length + item.length + 2 <= WIDTH) lines[last] += `, ${item}`;
      else lines.push(item);
    }
    return `${prefix}${open}\n  ${lines.map((line) => line.replaceAll("\n", "\n  ")).join(",\n  ")}\n${close}`;
  };

  const bounded = (count, items) => {
    if (count > ITEMS) items.push(`... ${count - ITEMS} more item${count === ITEMS + 1 ? "" : "s"}`);
    return items;
  };

  const showProperties = (value, depth, seen) => {
    const keys = Object.keys(value);
    const items = keys.slice(0, ITEMS).map((key) => {
      const descriptor = Object.getOwnPropertyDescriptor(value, key);
      const shown = descriptor?.get ? "[Getter]" : show(descriptor?.value, depth + 1, seen);
      return `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key)}: ${shown}`;
    });
    return bounded(keys.length, items);
  };

  const BUFFER_BYTES = 50;
  const showBuffer = (bytes) => {
    const shown = bytes.toString("hex", 0, Math.min(bytes.length, BUFFER_BYTES)).replace(/../g, " $&");
    return `<Buffer${shown}${bytes.length > BUFFER_BYTES ? ` ... ${bytes.length - BUFFER_BYTES} more bytes` : ""}>`;
  };

  const showObject = (value, depth, seen) => {
    const server = realm.serverName(value);
    if (server) return server;
    if (value instanceof Error) return showError(value, depth, seen);
    if (value instanceof Date) return Number.isNaN(+value) ? "Invalid Date" : toIso(value);
    if (value instanceof RegExp) return String(value);
    if (value instanceof realm.URL) return `URL { href: ${quote(value.href)} }`;
    if (value instanceof realm.URLSearchParams) return `URLSearchParams { ${quote(String(value))} }`;
    if (value instanceof realm.Buffer) return showBuffer(value);
    if (value instanceof Promise) return "Promise { <use await> }";
    const name = Object.getPrototypeOf(value) === null ? "[Object: null prototype]" : value.constructor?.name;
    if (depth > DEPTH) return isArray(value) ? "[Array]" : `[${name || "Object"}]`;
    if (isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
      const items = Array.from(value.slice(0, ITEMS), (item) => show(item, depth + 1, seen));
      return layOut(isArray(value) ? "" : `${name}(${value.length}) `, "[", bounded(value.length, items), "]");
    }
    if (value instanceof Map) {
      const items = [...value].slice(0, ITEMS).map(([key, item]) => {
        return `${show(key, depth + 1, seen)} => ${show(item, depth + 1, seen)}`;
      });
      return layOut(`Map(${value.size}) `, "{", bounded(value.size, items), "}");
    }
    if (value instanceof Set) {
      const items = [...value].slice(0, ITEMS).map((item) => show(item, depth + 1, seen));
      return layOut(`Set(${value.size}) `, "{", bounded(value.size, items), "}");
    }
    return layOut(name && name !== "Object" ? `${name} ` : "", "{", showProperties(value, depth, seen), "}");
  };

  const show = (value, depth, seen) => {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "bigint":
        return `${value}n`;
      case "symbol":
        return String(value);
      case "function":
        if (realm.serverName(value)) return realm.serverName(value);
        return /^class\b/.test(Function.prototype.toString.call(value))
          ? `[class ${value.name || "(anonymous)"}]`
          : `[Function: ${value.name || "(anonymous)"}]`;
      case "object":
        break;
      default:
        return Object.is(value, -0) ? "-0" : String(value);
    }
    if (value === null) return "null";
    if (seen.includes(value)) return "[Circular]";
    seen.push(value);
    try {
      return showObject(value, depth, seen);
    } finally {
      seen.pop();
    }
  };

  const inspect = (value) => show(value, 0, []);
  const plain = (value) => (typeof value === "string" ? value : inspect(value));

  const format = (values) => {
    if (typeof values[0] !== "string" || values.length === 1 || !values[0].includes("%")) {
      return values.map(plain).join(" ");
    }
    let next = 1;
    const text = values[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (next >= values.length) return whole;
      const value = values[next++];
      if (kind === "c") return "";
      if (kind === "s") return plain(value);
      if (kind === "d" || kind === "f") return String(Number(value));
      if (kind === "i") return String(Math.trunc(Number(value)));
      return kind === "j" ? JSON.stringify(value) : inspect(value);
    });
    return [text, ...values.slice(next).map(plain)].join(" ");
  };

  let indent = "";
  const counts = new Map();
  const times = new Map();
  const write = (toStderr, values) => {
    const text = format(values);
    native.print(toStderr, wellFormed((indent && indent + text.replaceAll("\n", `\n${indent}`)) || text) + "\n");
  };
  const out = (...values) => write(false, values);
  const err = (...values) => write(true, values);
  const elapsed = (label) => `${label}: ${(native.now() - (times.get(label) ?? 0)).toFixed(3)}ms`;
  const console = {
    log: out, info: out, debug: out, table: out, warn: err, error: err,
    dir: (value) => out(inspect(value)),
    trace: (...values) => err(...values, `\n${native.frames(stackHere())}`),
    assert: (condition, ...values) => condition || err("Assertion failed", ...values),
    group: (...values) => {
      if (values.length) out(...values);
      if (indent.length < 40) indent += "  ";
    },
    groupEnd: () => void (indent = indent.slice(2)),
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      out(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = "default") => void counts.delete(label),
    time: (label = "default") => void times.set(label, native.now()),
    timeLog: (label = "default", ...values) => out(elapsed(label), ...values),
    timeEnd: (label = "default") => {
      out(elapsed(label));
      times.delete(label);
    },
  };
  realm.format = (...values) => format(values);
  realm.inspectWhole = inspect;
  realm.inspect = (value) => realm.clip(inspect(value));
  realm.global("console", console);
}
