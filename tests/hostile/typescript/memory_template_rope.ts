// attack: a text of text of text, read where it must be in one piece
// outcome: limit|error memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
// endurance: ends by its deadline
let text = 'ab';
for (let depth = 0; depth < 27; depth++) text = `${text}${text}`;
({})[text] ?? new RegExp(text);
