// attack: regular expressions that nest so deep that their compiler overflows, or hold too much
// outcome: ok []
// control: none: the one of Node.js ends the process
const wrong = [];
const nest = (open, close, count, flags) => () => new RegExp(open.repeat(count) + 'a' + close.repeat(count), flags).test('aaa');
const ways = [
  nest('(', ')', 1e5), nest('(?:a|', ')', 1e5), nest('(?=', ')', 1e5), nest('(?<!', ')', 1e5), nest('[', ']', 1e5, 'v'), nest('(?:', '){2}', 30), nest('(?<a>', ')', 1e4), nest('', '?', 1e5), nest('(?i:', ')', 1e5),
  () => new RegExp('()'.repeat(1e5)).test(''), () => new RegExp('[a-z]'.repeat(1e5)).test(''), () => new RegExp('a{4294967295}{4294967295}').test('a'), () => new RegExp('[', 'v'), () => new RegExp('[]', 'v').test('a'), () => new RegExp('\\u{' + 'f'.repeat(1e5) + '}', 'u'), () => new RegExp('\\k<a'.repeat(1e4), 'u'), () => new RegExp('(?<' + 'a'.repeat(1e6) + '>)').exec('').groups,
];
for (const way of ways) {
  try {
    way();
  } catch (error) {
    if (!['SyntaxError', 'RangeError', 'InternalError', 'TypeError'].includes(error.name)) wrong.push(String(error));
  }
}
wrong;
