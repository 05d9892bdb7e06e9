//! The audit log: serializes records as a hash chain. Each record is a JSON object on one line, with the SHA-256 of the
//! line before it.
//!
//! A line is written member by member. Building a JSON tree for every call would cost more than the write itself.

use std::fmt::Write as _;
use std::time::SystemTime;

use lockhouse_base::representable_time::representable;

use sha2::{Digest as _, Sha256};

use super::signing::{PublicKey, SigningKey};
use data_encoding::HEXLOWER;

/// The text that separates the signed part of an audit record from its signature. The signature covers the
/// whole line up to this text.
pub(super) const SIGNATURE: &str = ",\"signature\":\"";

/// Maximum number of characters of one string in an audit record. Longer strings are truncated.
/// Bound: the audit log.
const TEXT_CHARS_MAX: usize = 4_096;

/// SHA-256 of the line of an audit record, without its line feed.
pub(crate) type Hash = [u8; 32];

pub(super) fn hash(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// Formats a time as RFC 3339 with microseconds. The alphabetical order of these texts is the order of their times. A time
/// before 1970 or after the year 9999, which has no such text, becomes the nearest one that has.
pub(super) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(representable(time)).to_string()
}

/// The JSON members of an audit record that follow its sequence number, the hash of the previous line, and its time:
/// `event` and all later members.
#[derive(Clone, Debug)]
pub(super) struct RecordBody(String);

impl RecordBody {
    pub(super) fn new(event: &'static str) -> Self {
        let mut text = String::with_capacity(512);
        let _ = write!(text, "\"event\":\"{event}\"");
        Self(text)
    }

    /// Returns a body from the members of a JSON object, which is valid and on one line.
    pub(super) fn from_object(object: &str) -> Self {
        Self(object.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned())
    }

    /// Returns the members as a JSON object.
    pub(super) fn as_object(&self) -> String {
        format!("{{{}}}", self.0)
    }

    /// Appends a string member to the record. A value of more than 4,096 characters is truncated.
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

    /// Appends a member to the record. `json` is the member's value, already serialized as JSON.
    pub(super) fn json(self, name: &str, json: &str) -> Self {
        self.number(name, json)
    }

    fn name(&mut self, name: &str) {
        self.0.push(',');
        push_string(&mut self.0, name);
        self.0.push(':');
    }
}

/// Appends `value` to the text `to` as a JSON string, with quotes and escapes.
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

/// The end of a hash chain: what the next line needs to continue the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Sequence number of the next line.
    pub(super) seq: u64,
    /// SHA-256 of the previous line, which the next line must contain.
    pub(super) prev: Hash,
}

impl Chain {
    /// Appends the next record of the chain to `lines`, without a signature.
    pub(super) fn push(&mut self, lines: &mut Vec<u8>, now: SystemTime, body: &RecordBody) {
        let mut line = self.open_line(now, body);
        line.push('}');
        self.finish(lines, line);
    }

    /// Appends the next record of the chain to `lines`, signed by `key`, which the record names. `next` is the key that
    /// must sign the next signed record; `None` if there is none, or if the key stays.
    pub(super) fn push_signed(
        &mut self,
        lines: &mut Vec<u8>,
        now: SystemTime,
        body: RecordBody,
        key: &SigningKey,
        next: Option<&PublicKey>,
    ) {
        let body = body.text("key", &key.public_key().to_hex());
        let next = next.map(PublicKey::to_hex);
        let line = self.open_line(now, &body.text_if("next", next.as_deref()));
        let signature = key.sign(line.as_bytes());
        self.finish(lines, format!("{line}{SIGNATURE}{signature}\"}}"));
    }

    fn open_line(&self, now: SystemTime, body: &RecordBody) -> String {
        let mut line = String::with_capacity(body.0.len() + 192);
        let _ = write!(line, "{{\"seq\":{},\"prev\":\"", self.seq);
        line.push_str(&HEXLOWER.encode(&self.prev));
        let _ = write!(line, "\",\"time\":\"{}\",", humantime::format_rfc3339_micros(now));
        line.push_str(&body.0);
        line
    }

    fn finish(&mut self, lines: &mut Vec<u8>, line: String) {
        *self = Self { seq: self.seq + 1, prev: hash(line.as_bytes()) };
        if lines.is_empty() {
            *lines = line.into_bytes();
        } else {
            lines.extend_from_slice(line.as_bytes());
        }
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
    fn each_line_contains_the_hash_of_the_previous_line() {
        let (mut chain, mut lines) = (Chain { seq: 0, prev: [0; 32] }, Vec::new());
        let body = RecordBody::new("call").text("server", "a\nb").number("ms", 1.5);
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
