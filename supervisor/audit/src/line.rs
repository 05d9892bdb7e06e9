//! Records as text: one JSON object a line, each with the hash of the line before it.
//!
//! Lines are written member by member. They are made on the way of every call, where a tree of values would cost more
//! than the write itself.

use std::fmt::Write as _;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::sign::Secrets;
use data_encoding::HEXLOWER;

/// What stands before the signature of a record. Signed is everything before it.
pub(super) const SIGNATURE: &str = ",\"signature\":\"";

/// Characters of one string in a record.
const TEXT_CHARS_MAX: usize = 4_096;

/// The SHA-256 of a line without its end.
pub(crate) type Hash = [u8; 32];

pub(super) fn hash(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// RFC 3339 with microseconds. As texts these are in the order of time.
pub(super) fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}

/// The members of one record from `event` on.
#[derive(Clone, Debug)]
pub(super) struct Body(String);

impl Body {
    pub(super) fn new(event: &'static str) -> Self {
        let mut text = String::with_capacity(512);
        let _ = write!(text, "\"event\":\"{event}\"");
        Self(text)
    }

    /// A text, cut where it is very long.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        match value.char_indices().nth(TEXT_CHARS_MAX) {
            Some((end, _)) => push_string(&mut self.0, &format!("{}…", &value[..end])),
            None => push_string(&mut self.0, value),
        }
        self
    }

    pub(super) fn text_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    pub(super) fn number(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.name(name);
        let _ = write!(self.0, "{value}");
        self
    }

    pub(super) fn number_if(self, name: &str, value: Option<impl std::fmt::Display>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    /// JSON as it is.
    pub(super) fn json(self, name: &str, json: &str) -> Self {
        self.number(name, json)
    }

    fn name(&mut self, name: &str) {
        self.0.push(',');
        push_string(&mut self.0, name);
        self.0.push(':');
    }
}

/// A JSON string.
pub(super) fn push_string(to: &mut String, value: &str) {
    let is_plain = value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f);
    if is_plain {
        to.push('"');
        to.push_str(value);
        to.push('"');
    } else {
        to.push_str(&serde_json::to_string(value).unwrap_or_default());
    }
}

/// Where a chain of lines stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Of the next line.
    pub(super) seq: u64,
    /// The hash of the line before it.
    pub(super) prev: Hash,
}

impl Chain {
    /// A line for `body` goes to the end of `lines`.
    pub(super) fn push(&mut self, lines: &mut Vec<u8>, now: SystemTime, body: &Body) {
        let line = self.open_line(now, body);
        self.finish(lines, line + "}");
    }

    /// The same with a signature.
    pub(super) fn push_signed(
        &mut self,
        lines: &mut Vec<u8>,
        now: SystemTime,
        body: &Body,
        secrets: &Secrets,
    ) {
        let line = self.open_line(now, body);
        let signature = HEXLOWER.encode(&secrets.sign(line.as_bytes()));
        self.finish(lines, format!("{line}{SIGNATURE}{signature}\"}}"));
    }

    fn open_line(&self, now: SystemTime, body: &Body) -> String {
        let mut line = String::with_capacity(body.0.len() + 160);
        let _ = write!(line, "{{\"seq\":{},\"prev\":\"", self.seq);
        line.push_str(&HEXLOWER.encode(&self.prev));
        let _ = write!(line, "\",\"time\":\"{}\",", humantime::format_rfc3339_micros(now));
        line.push_str(&body.0);
        line
    }

    fn finish(&mut self, lines: &mut Vec<u8>, line: String) {
        *self = Self { seq: self.seq + 1, prev: hash(line.as_bytes()) };
        lines.extend_from_slice(line.as_bytes());
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_a_json_string() {
        for text in ["", "plain", "é…", "a\"b\\c\n\u{0}\u{7f}\u{1f}", "\u{2028}"] {
            let mut json = String::new();
            push_string(&mut json, text);
            assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
            assert!(!json.contains('\n'));
        }
    }

    #[test]
    fn each_line_has_the_hash_of_the_one_before() {
        let (mut chain, mut lines) = (Chain { seq: 0, prev: [0; 32] }, Vec::new());
        let body = Body::new("call").text("server", "a\nb").number("ms", 1.5);
        chain.push(&mut lines, SystemTime::UNIX_EPOCH, &body);
        chain.push(&mut lines, SystemTime::UNIX_EPOCH, &body);
        let text = String::from_utf8(lines).expect("text");
        let [one, two] = text.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {text}") };
        let record: serde_json::Value = serde_json::from_str(two).expect("JSON");
        assert_eq!(
            (&record["seq"], &record["prev"]),
            (&1.into(), &HEXLOWER.encode(&hash(one.as_bytes())).into())
        );
        assert_eq!(
            (&record["server"], &record["time"]),
            (&"a\nb".into(), &"1970-01-01T00:00:00.000000Z".into())
        );
    }
}
