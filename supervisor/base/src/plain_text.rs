//! Texts of other processes, for logs and errors.

/// Returns the first `chars_max` characters of the text that are no control characters.
pub fn plain_text(text: &str, chars_max: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(chars_max).collect()
}
