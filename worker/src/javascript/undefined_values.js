// Explains programs whose value is undefined, or consists of undefined members only. Called only after such a program.
(native, realm) => {
  const { NAMES_MAX, answers, closest, describeOutline, outline } = realm;
  const { isArray } = Array;
  const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
  const objectPrototype = Object.prototype;
  const LEVELS_MAX = 4;

  // The keys of the first object in a value that is undefined, or an object or array of undefined members; null for a value
  // with content. Runs no code of the program, unless it is that of a proxy or of a changed built-in; if that fails, the value counts as one with content.
  realm.undefinedKeys = (value) => {
    let first = [];
    const hasContent = (part, level) => {
      if (part === undefined) return false;
      if (typeof part !== "object" || part === null || level === LEVELS_MAX || realm.serverName(part)) return true;
      if (isArray(part)) {
        for (let at = 0; at < part.length; at++) if (hasContent(part[at], level + 1)) return true;
        return part.length === 0;
      }
      const prototype = getPrototypeOf(part);
      if (prototype !== objectPrototype && prototype !== null) return true;
      const names = keys(part);
      if (first.length === 0) first = names;
      for (let at = 0; at < names.length; at++) {
        const described = getOwnPropertyDescriptor(part, names[at]);
        if (!described || described.get || hasContent(described.value, level + 1)) return true;
      }
      return names.length === 0;
    };
    try {
      return hasContent(value, 0) ? null : first;
    } catch {
      // A proxy that refuses, or built-ins that the program has changed.
      return null;
    }
  };

  // A name without what may differ between languages: `Name`, `name` and `NAME` are equal, as are `nextCursor` and `next_cursor`.
  const normalize = (name) => name.replace(/[-_]/g, "").toLowerCase();
  // The outline of the value that a property was read of, and the words that name it; undefined if it is not known.
  const objectOf = ({ object, origin }) => {
    if (!origin) return undefined;
    let subject = object;
    let found;
    if (origin.keys) {
      found = { kind: "object", keys: origin.keys, parts: {} };
    } else if (origin.tool !== undefined) {
      const answer = answers().findLast(([name]) => normalize(name.slice(name.indexOf(".") + 1)) === normalize(origin.tool));
      found = answer?.[1];
      // A long expression is no name.
      if (answer && /[^\w$.]/.test(object) && origin.steps.length === 0) subject = `the result of ${answer[0]}`;
    } else if (origin.variable in realm.scope) {
      found = outline(realm.scope[origin.variable]);
    }
    for (const step of origin.steps) found = step === null ? found?.item : found?.parts?.[step];
    return found && { subject, found };
  };
  const describe = ({ subject, found }, properties) => {
    if (found.kind !== "object") return `${subject} is ${found.kind === "string" ? "text" : describeOutline(found)}`;
    if (found.keys.length <= NAMES_MAX) return `${subject} has ${found.keys.join(", ") || "no properties"}`;
    const near = properties.map((name) => closest(name, found.keys)).filter((name) => name !== undefined);
    return `${subject} has ${[...new Set([...near, ...found.keys])].slice(0, NAMES_MAX).join(", ")}, …`;
  };

  // The read that was undefined first: in `r.Name.length` that of `Name`.
  const firstMissing = (read) => {
    for (let one = read; one; one = one.before) if (objectOf(one)) return one;
    return read;
  };

  // What was undefined, and what the objects have instead. `unanswered` describes a call that was not awaited, if there is one.
  realm.explainUndefined = ({ reads: last, calls, functions }, unanswered) => {
    const reads = last.map(firstMissing);
    const texts = [...new Set(reads.map(({ text }) => text)), ...calls];
    const notes = functions.map((name) => `${name} returns nothing`);
    if (texts.length) notes.unshift(`undefined: ${texts.join(", ")}`);
    if (!notes.length) return unanswered ?? null;
    const objects = new Map();
    for (const read of reads) {
      const known = objectOf(read);
      if (!known) continue;
      const [, properties] = objects.get(known.subject) ?? [known, []];
      objects.set(known.subject, [known, [...properties, read.property]]);
    }
    const known = [...objects.values()].slice(0, 2).map(([object, properties]) => describe(object, properties));
    const about = unanswered ? [unanswered] : known.length || !reads.length ? known : [realm.describeAnswers()];
    return [...notes, ...about].filter(Boolean).join("; ");
  };
}
