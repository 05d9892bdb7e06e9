//! Decides whether a key of a JSON object looks like a field name or like data.

const CHARS_MAX: usize = 40;
/// Maximum number of consecutive digits in a field name. For example, `address2` and `utf16` are field
/// names, but a key that contains a year is data.
const DIGITS_MAX: usize = 2;
/// Minimum length, in characters, of a text of hexadecimal digits that counts as a number and not as a field name.
const HEX_CHARS: usize = 8;

/// Returns whether a key looks like a field name: a short ASCII identifier without long numbers.
pub(super) fn is_field_name(key: &str) -> bool {
    let inner = key.strip_prefix(['_', '$', '@']).unwrap_or(key);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !inner.is_empty()
        && key.len() <= CHARS_MAX
        && inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && inner.chars().all(plain)
        && longest_number(inner) <= DIGITS_MAX
        && inner.chars().filter(char::is_ascii_digit).count() <= 2 * DIGITS_MAX
        && !is_hexadecimal(inner)
}

fn longest_number(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0)
}

fn is_hexadecimal(text: &str) -> bool {
    text.len() >= HEX_CHARS && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_distinguished_from_data() {
        for field in
            ["id", "created_at", "nextPageToken", "content-type", "_id", "$ref", "@type", "address2", "x"]
        {
            assert!(is_field_name(field), "{field}");
        }
        for value in [
            "",
            "_",
            "alice@example.com",
            "2026-11-21",
            "550e8400-e29b-41d4-a716-446655440000",
            "ABC-1234",
            "room 5",
            "user_10293",
            "deadbeef",
            "facade-cafe",
            "Jörg",
            "+49 30 1234",
            "192.168.0.1",
            "a/b",
            "O'Brien",
            "x".repeat(41).as_str(),
            "4711",
            "$",
            "acme.com",
            "Müller, Anna",
            "\u{202e}id",
            "a\u{0}",
        ] {
            assert!(!is_field_name(value), "{value}");
        }
    }
}
