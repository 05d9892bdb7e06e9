// Finds values with undefined parts, and explains them. Called after each program.
(native, realm) => {
  const { NAMES_MAX, answers, closest, describeOutline, outline } = realm;
  const { isArray } = Array;
  const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
  const objectPrototype = Object.prototype;
  const LEVELS_MAX = 4;
  const VISITS_MAX = 5_000;
  const SHOWN_MAX = 6;

  // Tells whether a value is "undefined", has undefined members only ("members"), or has such a "part" beside content; null for
  // other values. Runs no code of the program, unless it is that of a proxy or of a changed built-in; if that fails, the
  // value counts as one with content.
  realm.undefinedPart = (value) => {
    if (value === undefined) return "undefined";
    let parts = 0;
    let visits = VISITS_MAX;
    const isUndefined = (part, level) => {
      visits -= 1;
      if (part === undefined) return true;
      if (typeof part !== "object" || part === null || level === LEVELS_MAX || visits < 0 || realm.serverName(part)) return false;
      let all = true;
      if (isArray(part)) {
        for (let at = 0; at < part.length && visits >= 0; at++) if (!isUndefined(part[at], level + 1)) all = false;
        if (part.length === 0 || visits < 0) return false;
      } else {
        const prototype = getPrototypeOf(part);
        if (prototype !== objectPrototype && prototype !== null) return false;
        const names = keys(part);
        for (let at = 0; at < names.length && visits >= 0; at++) {
          const described = getOwnPropertyDescriptor(part, names[at]);
          if (!described || described.get || !isUndefined(described.value, level + 1)) all = false;
        }
        if (names.length === 0 || visits < 0) return false;
      }
      if (all) parts += 1;
      return all;
    };
    try {
      return isUndefined(value, 0) ? "members" : parts ? "part" : null;
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

  // The objects in the outlines of the recent results, each with the words that name it.
  const recordsIn = (subject, part) => {
    if (part?.kind === "array") return recordsIn(`an item of ${subject}`, part.item);
    if (part?.kind !== "object") return [];
    return [{ subject, found: part }, ...part.keys.flatMap((key) => recordsIn(`${key} of ${subject}`, part.parts[key]))];
  };
  const records = () => answers().flatMap(([name, part]) => recordsIn(`the result of ${name}`, part));
  // Properties that values have beside those of results.
  const STANDARD = ["length", "size", "message", "stack", "code"];

  // The read that was undefined first: in `r.Name.length` that of `Name`.
  const firstMissing = (read) => {
    for (let one = read; one; one = one.before) if (objectOf(one)) return one;
    return read;
  };
  // Of all reads of the program, those of names that their object does not have; if the object is not known, those of
  // names that no result has.
  const missingOf = (reads, defined) => {
    const all = [...STANDARD, ...defined, ...records().flatMap(({ found }) => found.keys)];
    const isMissing = (read) => {
      const known = objectOf(read)?.found;
      if (known?.kind === "object") return !known.keys.includes(read.property);
      return !known && !all.includes(read.property) && !(read.object in globalThis);
    };
    const missing = reads.filter(isMissing);
    return missing.filter(({ before }) => !before || !missing.some(({ text }) => text === before.text)).slice(0, SHOWN_MAX);
  };

  // What the objects of the reads have. For objects that are not known: the records of results with the most similar names.
  const describeObjects = (reads) => {
    const objects = new Map();
    const unknown = [];
    for (const read of reads) {
      const known = objectOf(read);
      if (!known) unknown.push(read.property);
      const [, properties] = objects.get(known?.subject) ?? [known, []];
      if (known) objects.set(known.subject, [known, [...properties, read.property]]);
    }
    if (!objects.size && unknown.length) {
      const all = records();
      const near = all.filter(({ found }) => unknown.some((name) => closest(name, found.keys)));
      for (const record of near.length ? near : all.toReversed()) objects.set(record.subject, [record, unknown]);
    }
    return [...objects.values()].slice(0, 2).map(([object, properties]) => describe(object, properties));
  };

  // What was undefined, and what the objects have instead. `part` is a result of `undefinedPart`. `unanswered` describes a
  // call that was not awaited, if there is one.
  realm.explainUndefined = ({ reads: last, calls, functions, others, defined }, part, unanswered) => {
    let reads = part === "part" ? [] : last.map(firstMissing);
    if (part !== "undefined" && !reads.length && !functions.length) reads = missingOf(others, defined);
    const texts = [...new Set(reads.map(({ text }) => text)), ...(part === "part" || (part === "members" && reads.length) ? [] : calls)];
    const notes = functions.map((name) => `${name} returns nothing`);
    if (texts.length) notes.unshift(`undefined: ${texts.join(", ")}`);
    if (!notes.length) return unanswered ?? null;
    return [...notes, ...(unanswered ? [unanswered] : describeObjects(reads))].join("; ");
  };
}
