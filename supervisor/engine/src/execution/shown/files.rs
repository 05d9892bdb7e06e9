//! Files in a value: what both languages make of bytes with a type, `{"base64": …, "mime_type": …}` with or without a `name`.

use std::borrow::Cow;

use serde::Deserialize;

/// How such an object begins; in valid JSON nothing else does.
const BEGINNING: &str = "{\"base64\":\"";
const MIME_TYPE_BYTES_MAX: usize = 127;

/// A file as it stands in a value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File<'t> {
    pub base64: &'t str,
    #[serde(borrow)]
    pub mime_type: Cow<'t, str>,
    #[serde(borrow)]
    pub name: Option<Cow<'t, str>>,
}

impl File<'_> {
    /// Bytes of what it holds.
    pub(super) fn bytes(&self) -> usize {
        let padding = self.base64.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.base64.len() / 4 * 3).saturating_sub(padding)
    }

    /// As a client may take it. The bytes themselves are nobody's business here.
    fn is_sound(&self) -> bool {
        let digits = self.base64.trim_end_matches('=');
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        self.base64.len().is_multiple_of(4)
            && self.base64.len() - digits.len() <= 2
            && digits.bytes().all(is_digit)
            && is_mime_type(&self.mime_type)
    }
}

/// `TYPE/SUBTYPE`, both of the characters that such names have.
fn is_mime_type(text: &str) -> bool {
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) && name.bytes().all(is_letter)
    };
    text.len() <= MIME_TYPE_BYTES_MAX
        && text.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

/// Valid JSON with something else, also JSON, in the place of each file.
pub(super) fn replaced<'t>(json: &'t str, mut by: impl FnMut(&File<'t>) -> String) -> Cow<'t, str> {
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find(BEGINNING) {
        let start = at + found;
        let mut reader = serde_json::Deserializer::from_str(&json[start..]).into_iter::<File<'t>>();
        // What is another object after all is read no further than to the first thing that a file has not.
        at = start + BEGINNING.len();
        if let Some(Ok(file)) = reader.next()
            && file.is_sound()
        {
            at = start + reader.byte_offset();
            out.push_str(&json[copied..start]);
            out.push_str(&by(&file));
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

    /// Of this thread: the machine may be busy.
    fn cpu_time() -> std::time::Duration {
        let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
        nix::time::clock_gettime(clock).expect("a clock").into()
    }

    fn told(json: &str) -> String {
        replaced(json, |file| format!("\"{} {} {:?}\"", file.mime_type, file.bytes(), file.name)).into_owned()
    }

    #[test]
    fn files_are_found_wherever_they_stand() {
        for (json, expected) in [
            (r#"{"base64":"YWJj","mime_type":"image/png"}"#, r#""image/png 3 None""#),
            (r#"[1,{"base64":"YWI=","mime_type":"a/b","name":"x"},2]"#, r#"[1,"a/b 2 Some("x")",2]"#),
            (
                r#"{"a":{"base64":"","mime_type":"a/b"},"b":[{"base64":"YQ==","mime_type":"a/b"}]}"#,
                r#"{"a":"a/b 0 None","b":["a/b 1 None"]}"#,
            ),
        ] {
            assert_eq!(told(json), expected);
        }
    }

    #[test]
    fn what_is_no_file_stays() {
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
            assert_eq!(told(json), json);
        }
    }

    #[test]
    fn many_beginnings_take_time_in_proportion() {
        let began = cpu_time();
        for part in [r#"{"base64":"YWJj","x":0},"#, r#"{"base64":"YWJj","mime_type":"a/b"},"#] {
            let json = format!("[{}0]", part.repeat(100_000));
            assert!(told(&json).ends_with(",0]"));
        }
        assert!(cpu_time() - began < std::time::Duration::from_secs(10));
    }
}
