//! A value with what is needed to serve it on another host, and its form in a copy: a line of JSON, and the value as JSON.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use lockhouse_messages::Owner;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum number of bytes of a copy beside its value: the first line, and what encryption adds.
pub(crate) const HEAD_BYTES_MAX: u64 = 1_024;
/// Number of characters of the name of a copy: the hexadecimal digits of SHA-256.
const NAME_CHARS: usize = 64;

/// The kind of a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// A value or output of a run that is too long for the answer to the AI client.
    Value,
    /// The whole answer of a background run.
    Answer,
}

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedValue {
    pub owner: Owner,
    pub kind: ValueKind,
    pub handle: String,
    pub expires: SystemTime,
    pub json: Arc<str>,
}

/// The first line of a copy.
#[derive(Serialize, Deserialize)]
struct Head {
    owner: String,
    kind: ValueKind,
    handle: String,
    /// In milliseconds since 1970.
    expires: u64,
}

impl CopiedValue {
    /// Returns the content of the copy. `None` if the value expires before 1970.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let expires = self.expires.duration_since(UNIX_EPOCH).ok()?.as_millis().try_into().ok()?;
        let (owner, handle) = (self.owner.to_hex(), self.handle.clone());
        let mut content = serde_json::to_vec(&Head { owner, kind: self.kind, handle, expires }).ok()?;
        content.reserve_exact(1 + self.json.len());
        content.push(b'\n');
        content.extend_from_slice(self.json.as_bytes());
        Some(content)
    }

    /// Returns the value of a copy. `None` if it belongs to another owner, or is none.
    pub(crate) fn decode(content: Vec<u8>, owner: Owner) -> Option<Self> {
        let end = content.iter().take(HEAD_BYTES_MAX as usize).position(|byte| *byte == b'\n')?;
        let (head, json) = content.split_at_checked(end)?;
        let Head { owner: written, kind, handle, expires } = serde_json::from_slice(head).ok()?;
        let expires = UNIX_EPOCH.checked_add(Duration::from_millis(expires))?;
        let json = std::str::from_utf8(json.get(1..)?).ok()?.into();
        (written == owner.to_hex()).then_some(Self { owner, kind, handle, expires, json })
    }
}

/// Returns the name of the copy of a value, which does not show its handle.
pub(crate) fn object_name(handle: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(handle))
}

/// Whether an object is a copy.
pub(crate) fn is_object_name(name: &str) -> bool {
    name.len() == NAME_CHARS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_value_of_its_owner_and_no_other_owner_gets_it() {
        let (owner, other) = (Owner::of_digest([1; 16]), Owner::of_digest([2; 16]));
        for json in ["1", "\"a\\nb\"", "", "{\"\u{e4}\":\n2}"] {
            let (handle, expires) =
                ("0123abcd".to_owned(), UNIX_EPOCH + Duration::from_millis(1_700_000_000_123));
            let value = CopiedValue { owner, kind: ValueKind::Answer, handle, expires, json: json.into() };
            let content = value.encode().expect("a time after 1970");
            assert_eq!(CopiedValue::decode(content.clone(), other), None);
            assert_eq!(CopiedValue::decode(content.clone(), owner), Some(value));
            for length in 0..content.len() - json.len() {
                assert_eq!(CopiedValue::decode(content[..length].to_vec(), owner), None, "{length}");
            }
        }
    }

    #[test]
    fn names_of_copies_are_digests() {
        let name = object_name("0123abcd");
        assert!(is_object_name(&name) && !name.contains("0123abcd"));
        for other in ["", "README", &name[1..], &name.to_uppercase(), &format!("{name}0")] {
            assert!(!is_object_name(other), "{other}");
        }
    }
}
