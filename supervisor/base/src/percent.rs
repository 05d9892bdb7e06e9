//! Percent-encoding in URLs.

/// Decodes the percent escapes of a text once. An invalid escape stays as it is, and bytes that are not UTF-8 become
/// U+FFFD.
pub fn percent_decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        match (digit(more.first()), digit(more.get(1))) {
            (Some(high), Some(low)) if *first == b'%' => {
                bytes.push((high * 16 + low) as u8);
                rest = &more[2..];
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once() {
        for (text, expected) in [
            ("/a", "/a"),
            ("/%61%2F%2f", "/a//"),
            ("%2561", "%61"),
            ("%C3%BC", "ü"),
            ("%", "%"),
            ("%4", "%4"),
            ("%+4", "%+4"),
            ("%zz%", "%zz%"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(percent_decoded(text), expected, "{text}");
        }
    }
}
