//! Limits how deeply a program nests, before the parser or other recursive code reads it.
//!
//! Parser, transformer and code generator of oxc recurse without a limit, and a C stack overflow would end the worker
//! without a message. A program that evades this estimate can still only end its own worker.

/// Maximum number of brackets that may be open at one place of a program.
/// Bound: workers and programs.
const BRACKETS_MAX: usize = 400;

/// Maximum number of operators within one pair of brackets, counted since the last separator. Each operator
/// of a long sum is a level of nesting for the parser.
/// Bound: workers and programs.
const OPERATORS_MAX: usize = 3_000;

/// State of the scanner inside one open bracket, or outside of all brackets.
#[derive(Default)]
struct Level {
    /// Number of operators since the last separator; each is a level of nesting for the parser.
    operators: usize,
    /// Whether the bracket follows `if`, `for`, `while` or `with`, so that the statement continues after it.
    heads_statement: bool,
    /// Whether the bracket is a `${…}` in a template literal, after which the text of the template continues.
    in_template: bool,
}

/// Returns the byte offset at which a program exceeds the nesting limits, or `None` if the program is within them.
///
/// Skips strings, comments, template text, and regular expressions where no division is possible. After a name or a
/// closing bracket, a slash counts as division, since only a parser could decide; this matters only for regular
/// expressions with hundreds of unbalanced brackets.
pub(super) fn too_deep_at(source: &str) -> Option<usize> {
    let mut scan = Scan::of(source);
    while scan.at < source.len() {
        let start = scan.at;
        scan.read_token();
        if scan.is_too_deep() {
            return Some(start);
        }
    }
    None
}

/// The state of the scanner that measures how deeply a program is nested.
struct Scan<'s> {
    source: &'s str,
    /// Byte offset of the next byte to scan.
    at: usize,
    /// The open brackets, innermost last. The first entry is the top level, so the list is never empty.
    levels: Vec<Level>,
    /// Whether a line break at the current position cannot end the statement, for example after an operator.
    continues: bool,
    /// Whether the last token was `if`, `for`, `while` or `with`, which a bracket follows.
    after_head: bool,
    /// Whether a slash at the current position is a division, because an operand precedes it.
    after_operand: bool,
}

impl<'s> Scan<'s> {
    fn of(source: &'s str) -> Self {
        let levels = vec![Level::default()];
        Self { source, at: 0, levels, continues: false, after_head: false, after_operand: false }
    }

    fn is_too_deep(&self) -> bool {
        let is_long = self.levels.last().is_some_and(|level| level.operators > OPERATORS_MAX);
        is_long || self.levels.len() > BRACKETS_MAX
    }

    fn read_token(&mut self) {
        let bytes = self.source.as_bytes();
        let first = bytes[self.at];
        self.at += 1;
        let next = bytes.get(self.at).copied();
        let was_after_head = std::mem::take(&mut self.after_head);
        let was_after_operand = std::mem::take(&mut self.after_operand);
        match first {
            quote @ (b'"' | b'\'') => self.operand_until(end_of_string(bytes, self.at, quote)),
            b'/' if next == Some(b'/') => {
                self.at = end_of_line(self.source, self.at);
                self.after_operand = was_after_operand;
            }
            b'/' if next == Some(b'*') => {
                self.at = end_of_comment(self.source, self.at);
                self.after_operand = was_after_operand;
            }
            b'/' if !was_after_operand && let Some(end) = end_of_regular_expression(bytes, self.at) => {
                self.operand_until(end);
            }
            b'(' | b'[' | b'{' => {
                self.levels.push(Level { heads_statement: was_after_head, ..Level::default() });
                self.continues = true;
            }
            b')' | b']' | b'}' => self.close(first),
            b';' | b',' => self.reset(),
            // A line break may end a statement without a semicolon.
            b'\n' if !self.continues && operand_follows(self.source, self.at) => self.reset(),
            b'\n' | b'\r' => self.after_operand = was_after_operand,
            first if in_word(first) => self.read_word(),
            sign @ (b'+' | b'-') if was_after_operand && next == Some(sign) => {
                self.count();
                self.operand_until(self.at + 1);
            }
            b'!' | b'~' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'?' | b':' | b'.'
            | b'&' | b'|' | b'^' | b'@' => {
                self.count();
                self.continues = true;
            }
            b'`' => {
                self.count();
                let end = end_of_text(bytes, self.at, &mut self.levels);
                self.operand_until(end);
            }
            b' ' | b'\t' => (self.after_head, self.after_operand) = (was_after_head, was_after_operand),
            _ => {}
        }
    }

    fn operand_until(&mut self, end: usize) {
        self.at = end;
        (self.continues, self.after_operand) = (false, true);
    }

    fn close(&mut self, bracket: u8) {
        let level = self.levels.pop().unwrap_or_default();
        (self.continues, self.after_operand) = (level.heads_statement, !level.heads_statement);
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        if level.in_template && bracket == b'}' {
            self.at = end_of_text(self.source.as_bytes(), self.at, &mut self.levels);
        } else if bracket == b'}' && !is_else(self.source, self.at) {
            self.reset();
        }
    }

    fn read_word(&mut self) {
        let (bytes, start) = (self.source.as_bytes(), self.at - 1);
        self.at = end_of_word(bytes, self.at);
        let word = &bytes[start..self.at];
        self.continues = is_nesting_word(word);
        self.after_head = matches!(word, b"if" | b"for" | b"while" | b"with");
        self.after_operand = !self.continues && !matches!(word, b"return" | b"throw" | b"case");
        if self.continues {
            self.count();
        }
    }

    fn count(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.operators += 1;
        }
    }

    fn reset(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.operators = 0;
        }
    }
}

fn is_else(source: &str, at: usize) -> bool {
    source.get(at..).is_some_and(|rest| rest.trim_start().starts_with("else"))
}

/// Whether an operand begins at byte `at` or after spaces on the same line. Looks at no further line, so that
/// the check stays fast for a program with many empty lines.
fn operand_follows(source: &str, at: usize) -> bool {
    let line = source.get(at..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
    !line.starts_with("else")
        && !line.starts_with("in ")
        && !line.starts_with("instanceof ")
        && line.bytes().next().is_some_and(|first| in_word(first) || matches!(first, b'"' | b'\''))
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

/// Whether a word is a keyword that can be chained, as in `typeof typeof x`. Each such keyword is a level of nesting
/// for the parser.
fn is_nesting_word(word: &[u8]) -> bool {
    matches!(
        word,
        b"typeof"
            | b"void"
            | b"delete"
            | b"await"
            | b"new"
            | b"if"
            | b"else"
            | b"for"
            | b"while"
            | b"do"
            | b"in"
            | b"instanceof"
            | b"as"
            | b"satisfies"
            | b"keyof"
            | b"readonly"
            | b"extends"
            | b"infer"
            | b"yield"
            | b"async"
            | b"unique"
            | b"is"
    )
}

fn end_of_string(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            // An unterminated string ends with its line.
            b'\n' | b'\r' => break,
            _ if byte == quote => break,
            _ => {}
        }
    }
    at.min(bytes.len())
}

fn end_of_line(source: &str, at: usize) -> usize {
    let length = source.get(at..).and_then(|rest| rest.find(['\n', '\r', '\u{2028}', '\u{2029}']));
    length.map_or(source.len(), |length| at + length)
}

/// Returns the byte offset after a regular expression's closing slash. Returns `None` if the line has no closing slash;
/// the opening slash is then a division.
fn end_of_regular_expression(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut in_class = false;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'\n' | b'\r' => return None,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at),
            _ => {}
        }
    }
}

/// Returns the byte offset at which template text ends: after the closing backtick, or after a `${`. Adds a
/// level to `levels` for a `${`.
fn end_of_text(bytes: &[u8], mut at: usize, levels: &mut Vec<Level>) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'`' => break,
            b'$' if bytes.get(at) == Some(&b'{') => {
                at += 1;
                levels.push(Level { in_template: true, ..Level::default() });
                break;
            }
            _ => {}
        }
    }
    at.min(bytes.len())
}

fn end_of_comment(source: &str, at: usize) -> usize {
    source.get(at + 1..).and_then(|rest| rest.find("*/")).map_or(source.len(), |length| at + 1 + length + 2)
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| !in_word(byte)).map_or(bytes.len(), |length| at + length)
}

#[cfg(test)]
mod tests {
    use super::too_deep_at;

    #[test]
    fn bombs_are_refused() {
        for bomb in [
            "(".repeat(100_000),
            "[".repeat(100_000),
            "!".repeat(100_000),
            "typeof ".repeat(100_000),
            "a=>".repeat(100_000),
            "a?a:".repeat(100_000),
            "if(a){}else ".repeat(100_000),
            "a.".repeat(100_000),
            "if(a)".repeat(100_000),
            "if (a)\n".repeat(100_000),
            "for(;;)".repeat(100_000),
            "typeof\n".repeat(100_000),
            "a =>\n".repeat(100_000),
            "1 +\n".repeat(100_000),
            "1\n+ ".repeat(100_000),
            "a<".repeat(100_000),
            "if(a){}\nelse ".repeat(100_000),
            "`${".repeat(100_000),
        ] {
            assert!(too_deep_at(&bomb).is_some(), "{}", &bomb[..12]);
        }
    }

    #[test]
    fn nothing_hides_brackets() {
        for cover in [
            "0; // \r",
            "0; // \u{2028}",
            "0; // \u{2029}",
            "`'`; ",
            "`${'`'}'`; ",
            "const q = /'/; ",
            "f(/[/'\"]/, /\\/`/); ",
            "if (a) /'/.test(a); ",
            "return /\"/.test(a) + ",
            "a++ / b; '/'; ",
        ] {
            assert!(too_deep_at(&format!("{cover}{}", "(".repeat(1_000))).is_some(), "{cover}");
        }
    }

    #[test]
    fn long_programs_are_not_deep() {
        for fine in [
            "const a = 1 + 2 * x.y;\n".repeat(10_000),
            format!("[{}]", "{\"a\": -1}, ".repeat(10_000)),
            "const a = 1 + 2\n".repeat(10_000),
            "é.a = f(b.c)\n".repeat(10_000),
            "if (a) { b() } else { c() }\n".repeat(10_000),
            "\n".repeat(1_000_000),
            "// ((((((((((\n".repeat(1_000),
            format!("'{}'", "(".repeat(1_000)),
            "x = '\\'';".repeat(5_000),
            "f('é'.a);".repeat(5_000),
            "f(a.replace(/'/g, \"\"));\n".repeat(5_000),
            "f(a.split(/[(]/), `(${a.b}'(`);\n".repeat(5_000),
            "a++\n".repeat(5_000),
            "a = f(b) / 2; b = c[0] / g(d)\n".repeat(5_000),
        ] {
            assert_eq!(too_deep_at(&fine), None, "{}", &fine[..12]);
        }
    }
}
