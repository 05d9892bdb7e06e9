//! Cuts texts that others wrote, so that one long text does not fill the page.

use std::borrow::Cow;

/// Maximum number of characters of a name, such as the name of a tool or of an AI client.
pub const NAME_CHARS_MAX: usize = 256;
/// Maximum number of characters of a longer text, such as the reason of a denial.
pub const TEXT_CHARS_MAX: usize = 2_000;

/// Returns the first `chars_max` characters of a text. A text that is cut ends with `…`.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

/// Cuts a name to [`NAME_CHARS_MAX`] characters.
#[must_use]
pub fn name(text: &str) -> String {
    cut(text, NAME_CHARS_MAX).into_owned()
}

/// Cuts a text to [`TEXT_CHARS_MAX`] characters.
#[must_use]
pub fn long(text: &str) -> String {
    cut(text, TEXT_CHARS_MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(name(&"x".repeat(300)).chars().count(), NAME_CHARS_MAX + 1);
    }
}
