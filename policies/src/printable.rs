//! Makes untrusted text safe to show to users and models: replaces, escapes or removes control and invisible
//! characters.

use std::borrow::Cow;

/// Replaces each control or invisible character of the text with U+FFFD, so that the text can neither control a
/// terminal nor hide characters.
pub fn printable(text: &str) -> String {
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Replaces each control or invisible character of the text with its JSON escape (`\uXXXX`), so that the exact text
/// is visible.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Returns the beginning of a line, at most `chars_max` characters, with tabs expanded and hidden characters escaped. A
/// truncated line ends in an ellipsis.
pub fn escaped_line(line: &str, chars_max: usize) -> String {
    let mut shown: String = line.replace('\t', "    ").chars().take(chars_max + 1).collect();
    if let Some((at, _)) = shown.char_indices().nth(chars_max) {
        shown.truncate(at);
        shown.push('…');
    }
    escaped(&shown)
}

/// Puts the text in quotation marks. A text of more than `chars_max` characters is truncated and ends in an ellipsis.
/// Control and invisible characters become escapes such as `\n`.
pub fn quoted(text: &str, chars_max: usize) -> String {
    let mut quoted = String::from('"');
    for c in truncate_chars(text, chars_max).chars() {
        match c {
            '"' | '\\' | '\n' | '\r' | '\t' => quoted.extend(c.escape_debug()),
            c if is_hidden(c) => quoted.extend(c.escape_unicode()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the text on one line of at most `chars_max` characters. Whitespace is collapsed to single spaces, and
/// control and invisible characters are removed.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    // Only a multiple of the limit is read, so that a hostile text cannot make this slow.
    let seen: String = text
        .chars()
        .take(chars_max.saturating_mul(8))
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_hidden(*c))
        .collect();
    let words = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate_chars(&words, chars_max)
}

/// Truncates the text to at most `chars_max` characters. The last character of a truncated text is an ellipsis.
pub(crate) fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Makes text of several lines safe to show to a model or a user: normalises line ends, and replaces control and
/// invisible characters, except tabs, with U+FFFD. Variation selectors, joiners and soft hyphens are removed, because
/// they only affect the form of the text around them.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let shown = text.chars().filter_map(|c| match c {
        c if stays(c) => Some(c),
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => None,
        _ => Some(char::REPLACEMENT_CHARACTER),
    });
    Cow::Owned(shown.collect())
}

/// Whether a character is invisible or has no defined meaning: control characters, characters that reorder text,
/// default-ignorable and other format characters, private use and noncharacters.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe;
    is_noncharacter
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
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
    fn an_escaped_line_is_truncated_and_has_no_tabs() {
        assert_eq!(escaped_line("\tabc\u{7}def", 8), "    abc\\u0007…");
    }

    #[test]
    fn prose_keeps_its_lines_and_emoji_and_loses_invisible_characters() {
        for (text, shown) in [
            ("Größe 中\n\tx 👍", "Größe 中\n\tx 👍"),
            ("a\r\nb\rc\u{2028}d", "a\nb\nc\nd"),
            (
                "\u{26a0}\u{fe0f} 👩\u{200d}💻 \u{645}\u{6cc}\u{200c}\u{62e}",
                "\u{26a0} 👩💻 \u{645}\u{6cc}\u{62e}",
            ),
            ("a\u{202e}b\u{200b}c\u{1b}[2J", "a\u{fffd}b\u{fffd}c\u{fffd}[2J"),
            (
                "\u{e0069}\u{e0100}\u{f0000}\u{e000}\u{ffff}\u{3164}\u{2800}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
        ] {
            assert_eq!(visible_text(text), shown, "{text:?}");
        }
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
