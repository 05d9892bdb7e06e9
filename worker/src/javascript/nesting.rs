//! A look at how deep a program nests, before anything recursive reads it.
//!
//! Parser, transformer and printer of oxc recurse and have no limit of their own, and a C stack that overflows ends
//! the worker without a word. What deceives this estimate still only ends the worker.

/// How many brackets may be open at once.
const BRACKETS_MAX: usize = 400;

/// How many operators one expression may hold at one level of brackets. Long sums nest too: each is a node deeper.
const OPERATORS_MAX: usize = 3_000;

/// The byte at which a program becomes too deep, if it does.
///
/// It skips strings and comments, but reads template and regular expression literals as if they were code: brackets in
/// these would have to be unbalanced by hundreds to count.
pub(super) fn too_deep_at(source: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    // Operators since the last separator, for each open bracket and the top level.
    let mut levels: Vec<usize> = vec![0];
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            quote @ (b'"' | b'\'') => at = end_of_string(bytes, at, quote),
            b'/' if bytes.get(at) == Some(&b'/') => at = end_of_line(bytes, at),
            b'/' if bytes.get(at) == Some(&b'*') => at = end_of_comment(source, at),
            b'(' | b'[' | b'{' => levels.push(0),
            b')' | b']' | b'}' => {
                levels.pop();
                if levels.is_empty() {
                    levels.push(0);
                }
                // A block ends a statement, unless `else` carries it on.
                let carries_on = source.get(at..).is_some_and(|rest| rest.trim_start().starts_with("else"));
                if bytes[start] == b'}' && !carries_on {
                    reset(&mut levels);
                }
            }
            b';' | b',' => reset(&mut levels),
            first if first.is_ascii_alphabetic() => {
                at = end_of_word(bytes, at);
                if is_nesting_word(&bytes[start..at]) {
                    count(&mut levels);
                }
            }
            b'!' | b'~' | b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'?' | b':' | b'.' | b'&'
            | b'|' | b'^' | b'`' | b'@' => count(&mut levels),
            _ => {}
        }
        if levels.len() > BRACKETS_MAX || levels.last().is_some_and(|&operators| operators > OPERATORS_MAX) {
            return Some(start);
        }
    }
    None
}

fn count(levels: &mut [usize]) {
    if let Some(level) = levels.last_mut() {
        *level += 1;
    }
}

fn reset(levels: &mut [usize]) {
    if let Some(level) = levels.last_mut() {
        *level = 0;
    }
}

/// Words that can stand in a row, each one level deeper.
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
            // An unclosed string ends with its line.
            b'\n' => break,
            _ if byte == quote => break,
            _ => {}
        }
    }
    at.min(bytes.len())
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn end_of_comment(source: &str, at: usize) -> usize {
    source.get(at + 1..).and_then(|rest| rest.find("*/")).map_or(source.len(), |length| at + 1 + length + 2)
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$';
    bytes[at..].iter().position(|byte| !in_word(byte)).map_or(bytes.len(), |length| at + length)
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
            "a<".repeat(100_000),
        ] {
            assert!(too_deep_at(&bomb).is_some(), "{}", &bomb[..12]);
        }
    }

    #[test]
    fn long_programs_are_not_deep() {
        for fine in [
            "const a = 1 + 2 * x.y;\n".repeat(10_000),
            format!("[{}]", "{\"a\": -1}, ".repeat(10_000)),
            "const a = 1 + 2\n".repeat(900),
            "if (a) { b() } else { c() }\n".repeat(10_000),
            "// ((((((((((\n".repeat(1_000),
            format!("'{}'", "(".repeat(1_000)),
            "x = '\\'';".repeat(5_000),
            "f('é'.a);".repeat(5_000),
        ] {
            assert_eq!(too_deep_at(&fine), None, "{}", &fine[..12]);
        }
    }
}
