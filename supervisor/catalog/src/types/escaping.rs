//! Escapes text from upstream servers for generated source code, so that the text cannot end the literal or comment
//! that contains it.

use std::fmt::Write as _;

use lockhouse_protocol::Language;

/// Returns the text as a string literal in the language. Invisible characters and characters that change the writing
/// direction are written as escapes.
pub(crate) fn quoted(text: &str, language: Language) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            c if is_visible(c) => literal.push(c),
            c => {
                let number = u32::from(c);
                let _ = match language {
                    _ if number <= 0xffff => write!(literal, "\\u{number:04x}"),
                    Language::Python => write!(literal, "\\U{number:08x}"),
                    Language::Typescript => write!(literal, "\\u{{{number:x}}}"),
                };
            }
        }
    }
    literal.push('"');
    literal
}

fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut bytes = [0; 4];
    let text: &str = c.encode_utf8(&mut bytes);
    lockhouse_policies::printable(text) == text && !matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns the text as lines for a comment or docstring, without control characters. Text after the first `chars_max`
/// characters is replaced by `…`.
pub(crate) fn comment_lines(text: &str, chars_max: usize) -> Vec<String> {
    let text = lockhouse_policies::visible_text(text);
    let cut: String = text.chars().take(chars_max).collect();
    let mut lines: Vec<String> =
        cut.split('\n').map(|line| line.replace('\t', "    ").trim_end().to_owned()).collect();
    if cut.len() < text.len()
        && let Some(last) = lines.last_mut()
    {
        last.push('…');
    }
    lines.dedup_by(|one, other| one.is_empty() && other.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.drain(..blank);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_literal_round_trips_and_cannot_be_escaped() {
        assert_eq!(quoted("a\"\\\n\u{202e}é", Language::Python), r#""a\"\\\n\u202eé""#);
        assert_eq!(quoted("\u{e0041}", Language::Python), r#""\U000e0041""#);
        assert_eq!(quoted("\u{e0041}", Language::Typescript), r#""\u{e0041}""#);
    }

    #[test]
    fn comments_have_no_control_characters() {
        assert_eq!(
            comment_lines("\n\na\r\n\n\n\nb\u{1b}[1m\u{2028}c\n", 100),
            ["a", "", "b\u{fffd}[1m", "c"]
        );
        assert_eq!(comment_lines("abcdef", 3), ["abc…"]);
        assert!(comment_lines(" \n ", 9).is_empty());
    }
}
