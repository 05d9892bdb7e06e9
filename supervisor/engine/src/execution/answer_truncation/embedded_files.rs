//! Finds files in the JSON of a program's value. Programs in both languages return a file as an object `{"base64": …,
//! "mime_type": …}`, with an optional `name`, and bytes as `{"base64": …}`.

use std::borrow::Cow;

use data_encoding::BASE64;
use lockhouse_stores::result_files::{HEAD_BYTES, checked};
use serde::Deserialize;

/// The start of the JSON object of a file. In valid JSON these characters can only start an object, because the
/// quotation marks would be escaped inside a string.
const OBJECT_START: &str = "{\"base64\":\"";
const MIME_TYPE_BYTES_MAX: usize = 127;

/// A file in the JSON of a program's value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File<'t> {
    pub base64: &'t str,
    /// `None` for bytes of which nothing more is known.
    #[serde(borrow)]
    pub mime_type: Option<Cow<'t, str>>,
    #[serde(borrow)]
    pub name: Option<Cow<'t, str>>,
}

impl File<'_> {
    /// Returns the size of the decoded file, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let padding = self.base64.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.base64.len() / 4 * 3).saturating_sub(padding)
    }

    /// Returns the media type of the file, which is not what the program claims if its bytes are another thing. `None` for
    /// bytes of which nothing is known.
    pub(super) fn media_type(&self) -> Option<String> {
        // Four characters are three bytes.
        let head = self.base64.get(..HEAD_BYTES.div_ceil(3) * 4).unwrap_or(self.base64);
        let head = BASE64.decode(head.as_bytes()).unwrap_or_default();
        Some(checked(self.mime_type.as_ref()?.to_string(), &head))
    }

    /// Whether the base64 text and the MIME type of the file are well-formed. The decoded bytes are not checked.
    fn is_valid(&self) -> bool {
        let digits = self.base64.trim_end_matches('=');
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        self.base64.len().is_multiple_of(4)
            && self.base64.len() - digits.len() <= 2
            && digits.bytes().all(is_digit)
            && self.mime_type.as_deref().is_none_or(is_mime_type)
            && (self.mime_type.is_some() || self.name.is_none())
    }
}

/// Whether the text has the form `TYPE/SUBTYPE`, with only the characters that MIME types permit.
fn is_mime_type(text: &str) -> bool {
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) && name.bytes().all(is_letter)
    };
    text.len() <= MIME_TYPE_BYTES_MAX
        && text.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

/// Replaces each file object in valid JSON with the JSON text that `replacement` returns for the file. An object for which
/// it returns `None` stays.
pub(super) fn replace_files<'t>(
    json: &'t str,
    mut replacement: impl FnMut(&File<'t>) -> Option<String>,
) -> Cow<'t, str> {
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find(OBJECT_START) {
        let start = at + found;
        let mut reader = serde_json::Deserializer::from_str(&json[start..]).into_iter::<File<'t>>();
        // The deserializer stops at the first member that is not part of a file, so an object of another kind costs
        // little.
        at = start + OBJECT_START.len();
        if let Some(Ok(file)) = reader.next()
            && file.is_valid()
            && let Some(text) = replacement(&file)
        {
            at = start + reader.byte_offset();
            out.push_str(&json[copied..start]);
            out.push_str(&text);
            copied = at;
        }
    }
    if copied == 0 {
        return json.into();
    }
    out.push_str(&json[copied..]);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPU time of the current thread. Unlike wall-clock time, CPU time does not depend on other load.
    fn cpu_time() -> std::time::Duration {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        nix::time::clock_gettime(clock).expect("a clock").into()
    }

    fn replaced(json: &str) -> String {
        let shown = |file: &File<'_>| {
            Some(format!("\"{} {} {:?}\"", file.mime_type.as_ref()?, file.bytes(), file.name))
        };
        replace_files(json, shown).into_owned()
    }

    #[test]
    fn files_are_found_at_any_depth() {
        for (json, expected) in [
            (r#"{"base64":"YWJj","mime_type":"image/png"}"#, r#""image/png 3 None""#),
            (r#"[1,{"base64":"YWI=","mime_type":"a/b","name":"x"},2]"#, r#"[1,"a/b 2 Some("x")",2]"#),
            (
                r#"{"a":{"base64":"","mime_type":"a/b"},"b":[{"base64":"YQ==","mime_type":"a/b"}]}"#,
                r#"{"a":"a/b 0 None","b":["a/b 1 None"]}"#,
            ),
        ] {
            assert_eq!(replaced(json), expected);
        }
    }

    #[test]
    fn other_objects_are_not_replaced() {
        for json in [
            r#"{"base64":"YWJj"}"#,
            r#"{"base64":"YWJj","mime_type":"image/png","more":1}"#,
            r#"{"base64":"YWJj","mime_type":"image"}"#,
            r#"{"base64":"YWJj","mime_type":"image/png\r\nX: y"}"#,
            r#"{"base64":"YWJj","mime_type":"text/html; charset=utf-8"}"#,
            r#"{"base64":"YWJ","mime_type":"image/png"}"#,
            r#"{"base64":"Y===","mime_type":"image/png"}"#,
            r#"{"base64":"YW j","mime_type":"image/png"}"#,
            r#"{"base64":"\u0061aaa","mime_type":"image/png"}"#,
            r#"{"base64":1,"mime_type":"image/png"}"#,
            r#"["{\"base64\":\"YWJj\",\"mime_type\":\"image/png\"}"]"#,
            r#"{"base64":"YWJj","mime_type":{"base64":"YWJj"}}"#,
        ] {
            assert_eq!(replaced(json), json);
        }
    }

    #[test]
    fn many_file_objects_take_linear_time() {
        let began = cpu_time();
        for part in [r#"{"base64":"YWJj","x":0},"#, r#"{"base64":"YWJj","mime_type":"a/b"},"#] {
            let json = format!("[{}0]", part.repeat(100_000));
            assert!(replaced(&json).ends_with(",0]"));
        }
        assert!(cpu_time() - began < std::time::Duration::from_secs(10));
    }
}
