//! Text from elsewhere, made harmless for a terminal and for a reader.

/// The text with each control or invisible character replaced by U+FFFD, so that it can neither drive a terminal nor
/// show something other than what it is.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The text, or its beginning and an ellipsis, in quotation marks: each control or invisible character as an escape such as
/// `\n`, so that a reader sees what is there.
pub fn quoted(text: &str, chars_max: usize) -> String {
    let mut quoted = String::from('"');
    for c in clipped(text, chars_max).chars() {
        match c {
            '"' | '\\' | '\n' | '\r' | '\t' => quoted.extend(c.escape_debug()),
            c if is_hidden(c) => quoted.extend(c.escape_unicode()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The text on one line: whitespace collapsed, hidden characters dropped, at most `chars_max` characters.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    // Looking at a few times the limit is enough, and keeps the work independent of a hostile text's length.
    let seen: String = text
        .chars()
        .take(chars_max.saturating_mul(8))
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_hidden(*c))
        .collect();
    let words = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    clipped(&words, chars_max)
}

/// The text, or its beginning and an ellipsis, so that it has at most `chars_max` characters.
pub(crate) fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Whether a character cannot be seen: control characters, and those that reorder text, take no room or smuggle bytes along unseen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_short_visible_line() {
        assert_eq!(one_line("  Lists\r\n\tissues\u{1b}[31m\u{202e}\u{e0041} ", 80), "Lists issues[31m");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("\u{0}\n", 80), "");
    }

    #[test]
    fn a_quoted_text_shows_each_hidden_character_as_an_escape() {
        assert_eq!(quoted("a\n\"b\\\t\u{1b}\u{202e}é’", 80), r#""a\n\"b\\\t\u{1b}\u{202e}é’""#);
        assert_eq!(quoted("abcdefg", 6), "\"abcde…\"");
    }

    #[test]
    fn hidden_characters_become_visible() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}\u{200b}é"), "a\u{fffd}]0;x\u{fffd}\u{fffd}é");
    }
}
