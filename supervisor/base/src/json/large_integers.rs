//! Replaces large integers in JSON by strings, because most JSON readers would round such integers.

use std::borrow::Cow;

/// 2^53 - 1 in decimal: double-precision numbers represent every integer up to this one exactly.
const SAFE_MAX: &str = "9007199254740991";

/// Returns the valid JSON `json` with each integer beyond ±(2^53 - 1) replaced by a string of its digits.
pub fn quote_large_integers(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = super::raw_text::end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                at = super::raw_text::end_of_scalar(bytes, start);
                let number = &json[start..at];
                if is_unsafe(number) {
                    out.push_str(&json[copied..start]);
                    out.push('"');
                    out.push_str(number);
                    out.push('"');
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return json.into();
    }
    out.push_str(&json[copied..]);
    out.into()
}

fn is_unsafe(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_longer = digits.len() > SAFE_MAX.len();
    (is_longer || digits.len() == SAFE_MAX.len() && digits > SAFE_MAX)
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::quote_large_integers;

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
            (
                "[0.12345678901234567,12345678901234567.5,1e300,1E+20]",
                "[0.12345678901234567,12345678901234567.5,1e300,1E+20]",
            ),
        ] {
            assert_eq!(quote_large_integers(json), expected);
        }
    }
}
