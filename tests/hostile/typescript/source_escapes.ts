// attack: escapes that are no characters, in names and texts
// outcome: error escape
// control: none: it does not parse
const a\u{110000} = '\u{110000}';
