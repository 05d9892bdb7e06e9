//! JSON text that the supervisor and the workers read alike, without parsing it.

use std::borrow::Cow;
use std::ops::Range;

/// 2^53 - 1 in decimal: numbers of JavaScript represent every integer up to this one exactly.
const SAFE_MAX: &[u8] = b"9007199254740991";

/// Returns the text with each JSON integer beyond ±(2^53 - 1) replaced by a string of its digits, because most JSON readers
/// would round it. A text that is not valid JSON does not become valid.
#[must_use]
pub fn quote_large_integers(json: &str) -> Cow<'_, str> {
    let (mut quoted, mut copied) = (String::new(), 0);
    for Range { start, end } in numbers(json).filter(|number| is_large(&json.as_bytes()[number.clone()])) {
        quoted.push_str(&json[copied..start]);
        quoted.push('"');
        quoted.push_str(&json[start..end]);
        quoted.push('"');
        copied = end;
    }
    if copied == 0 {
        return json.into();
    }
    quoted.push_str(&json[copied..]);
    quoted.into()
}

/// Whether a JSON text contains an integer beyond ±(2^53 - 1), which a number of JavaScript would round.
#[must_use]
pub fn has_large_integer(json: &str) -> bool {
    numbers(json).any(|number| is_large(&json.as_bytes()[number]))
}

/// Returns the first integer in a JSON text that a 64-bit integer, signed or unsigned, cannot represent.
#[must_use]
pub fn integer_beyond_64_bits(json: &str) -> Option<&str> {
    let exceeds = |number: &&str| {
        is_large(number.as_bytes()) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
    };
    numbers(json).map(|number| &json[number]).find(exceeds)
}

/// Whether a text is, as a whole, the digits of an integer beyond ±(2^53 - 1).
#[must_use]
pub fn is_large_integer(text: &str) -> bool {
    is_large(text.as_bytes())
}

/// Returns the byte ranges of the numbers in a JSON text, outside of its strings.
fn numbers(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            match byte {
                b'"' => at = end_of_string(bytes, at),
                b'-' | b'0'..=b'9' => {
                    at = end_of_number(bytes, at);
                    return Some(start..at);
                }
                _ => at += 1,
            }
        }
        None
    })
}

/// Returns the byte position after the string whose opening quotation mark is at `start`, or the end of the text if the
/// string is not closed.
#[must_use]
pub fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(|byte| is_of_number(byte)).count()
}

fn is_large(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let is_longer = digits.len() > SAFE_MAX.len();
    (is_longer || digits.len() == SAFE_MAX.len() && digits > SAFE_MAX)
        && digits.first() != Some(&b'0')
        && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::{has_large_integer, integer_beyond_64_bits, quote_large_integers};

    #[test]
    fn integers_beyond_2_53_become_strings() {
        for (json, expected) in [
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", r#""9007199254740992""#),
            ("-9007199254740991", "-9007199254740991"),
            ("-9007199254740992", r#""-9007199254740992""#),
            ("[1, 123456789012345678901234567890 ]", r#"[1, "123456789012345678901234567890" ]"#),
            (
                r#"{"99999999999999999999":99999999999999999999}"#,
                r#"{"99999999999999999999":"99999999999999999999"}"#,
            ),
            (r#""a \" 99999999999999999999""#, r#""a \" 99999999999999999999""#),
            (r#""ž \" 99999999999999999999""#, r#""ž \" 99999999999999999999""#),
            (
                "[0.12345678901234567,12345678901234567.5,1e300,1E+20]",
                "[0.12345678901234567,12345678901234567.5,1e300,1E+20]",
            ),
        ] {
            assert_eq!(quote_large_integers(json), expected);
            assert_eq!(has_large_integer(json), json != expected, "{json}");
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_found() {
        for (json, expected) in [
            ("[-9223372036854775808, 18446744073709551615, 1e300]", None),
            (r#"{"18446744073709551616": "18446744073709551616"}"#, None),
            ("[18446744073709551616]", Some("18446744073709551616")),
            ("[1, -9223372036854775809]", Some("-9223372036854775809")),
        ] {
            assert_eq!(integer_beyond_64_bits(json), expected, "{json}");
        }
    }

    #[test]
    fn text_that_is_no_json_does_not_become_json() {
        for text in [
            "[00000000000000000001]",
            "[9999999999999999x]",
            "\"9999999999999999",
            "\"\\",
            "[-]",
            "\u{17e}-",
            "",
        ] {
            let quoted = quote_large_integers(text);
            assert!(serde_json::from_str::<serde_json::Value>(&quoted).is_err(), "{text}: {quoted}");
        }
    }
}
