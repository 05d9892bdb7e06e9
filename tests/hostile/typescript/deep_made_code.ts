// attack: code made at run time that nests a hundred thousand levels, in the engine's own parser
// outcome: ok []
// control: none: others have other words
// limits: memory_mib = 512, timeout_seconds = 30
const wrong = [];
const nest = (open, middle, close, count = 1e5) => open.repeat(count) + middle + close.repeat(count);
const sources = {
  brackets: nest('(', '1', ')'), lists: nest('[', '1', ']'), objects: nest('{a:', '1', '}'), blocks: nest('{', '', '}'), functions: nest('function a(){', '', '}', 1e5), arrows: nest('a=>', '1', ''), templates: nest('`${', '1', '}`'), operators: nest('- ', '1', ''), conditions: nest('1?1:', '1', ''), powers: nest('1**', '1', ''),
  members: `a${'?.a'.repeat(3e5)}`, news: nest('new ', 'a', ''), classes: nest('class extends ', 'Object', '{}', 1e5), patterns: `var ${nest('[', 'a', ']')}=1`, ifs: nest('if(0)', ';', ''), loops: nest('for(;;)', 'break', ''), tries: nest('try{', '', '}catch{}', 1e5), withs: nest('with({})', ';', ''), labels: Array.from({ length: 1e4 }, (_, at) => `a${at}:`).join('') + ';',
  locals: 'var ' + Array.from({ length: 1e5 }, (_, at) => `a${at}`).join(), calls: `f(${Array(1e5).fill(1)})`, cases: `switch(1){${Array.from({ length: 1e5 }, (_, at) => `case ${at}:`).join('')}}`, constants: `[${Array.from({ length: 1e5 }, (_, at) => at + 0.5)}]`, numbers: '1'.repeat(1e6) + 'n', escapes: `'${'\\u{1f600}'.repeat(1e5)}'`,
};
for (const [name, source] of Object.entries(sources)) {
  try {
    new Function(source);
  } catch (error) {
    if (!['SyntaxError', 'RangeError', 'InternalError', 'TypeError'].includes(error?.name)) wrong.push(`${name}: ${error}`);
  }
}
wrong;
