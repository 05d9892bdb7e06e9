// attack: regular expressions that are recompiled, and texts that change, while they are at work
// outcome: ok "whole"
// control: outside
const texts = [];
for (const method of [Symbol.replace, Symbol.match, Symbol.split, Symbol.search, Symbol.matchAll]) {
  for (const at of ['lastIndex', 'flags', 'exec', 'constructor', 'global', 'unicode', 'sticky']) {
    const expression = new RegExp('(?<name>(a)|(b)|((c)(d)))+', 'gd');
    let hits = 0;
    const hit = () => {
      if (hits++ === 0) expression.compile(`${'(x)'.repeat(200)}|(?:)`, 'g');
    };
    const real = RegExp.prototype[at];
    try {
      if (at === 'lastIndex') expression.lastIndex = { valueOf: () => (hit(), 2) };
      else Object.defineProperty(expression, at, { get: () => (hit(), at === 'flags' ? 'gd' : at === 'exec' ? function (text) { hit(); return RegExp.prototype.exec.call(this, text); } : at === 'constructor' ? { [Symbol.species]: function (pattern, flags) { hit(); return new RegExp(pattern, flags); } } : (real ?? false)) });
      const got = expression[method]('abcdabcd'.repeat(20), method === Symbol.replace ? () => (hit(), '$<name>$1$&') : { valueOf: () => (hit(), 5) });
      texts.push(method === Symbol.matchAll ? [...got].join() : String(got));
    } catch {}
  }
}
const hostile = { exec: () => ({ length: 2 ** 31, index: -1, 0: { toString: () => 'x'.repeat(100) }, groups: new Proxy({}, { get: () => 'z' }) }), flags: 'gy', lastIndex: 2 ** 53 };
for (const method of [Symbol.replace, Symbol.match, Symbol.split]) {
  try {
    let rounds = 0;
    RegExp.prototype[method].call({ ...hostile, exec: () => (rounds++ < 5 ? { ...hostile.exec(), length: 3 } : null) }, 'abc', '$<a>$9$`$\'');
  } catch {}
}
texts.every((text) => /^[abcdxnme$<>&1,0-9-]*$|null|undefined/.test(text)) ? 'whole' : texts;
