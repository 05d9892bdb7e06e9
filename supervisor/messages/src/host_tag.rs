//! Which host of a cluster made an id.

use std::fmt;

use lockhouse_protocol::ExecutionId;
use serde::{Deserialize, Serialize};

/// One life of one host of a cluster: 40 random bits, which no other host has, and no earlier life of the same host. They are
/// the last ten hexadecimal digits of every id that the host gives an AI client: executions, handles, MCP sessions and states of
/// requests. So each host knows from an id which host to ask. Without a cluster, these digits are random too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostTag(u64);

/// A text is no tag of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHostTag;

impl fmt::Display for InvalidHostTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected ten hexadecimal digits")
    }
}

impl HostTag {
    /// Number of hexadecimal digits.
    pub const DIGITS: usize = 10;
    const MASK: u128 = (1 << (4 * Self::DIGITS)) - 1;

    /// Returns the tag with the last 40 of these bits.
    #[must_use]
    pub fn of_bits(bits: u128) -> Self {
        Self((bits & Self::MASK) as u64)
    }

    /// Returns the tag of the host that made an execution.
    #[must_use]
    pub fn of_execution(id: ExecutionId) -> Self {
        Self::of_bits(id.0)
    }

    /// Returns the tag of the host that made an id. `None` if the id does not end as those of hosts do.
    #[must_use]
    pub fn of_id(id: &str) -> Option<Self> {
        let digits = id.len().checked_sub(Self::DIGITS).and_then(|start| id.get(start..))?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if !digits.bytes().all(is_digit) {
            return None;
        }
        u64::from_str_radix(digits, 16).ok().map(Self)
    }

    /// Replaces the last 40 bits of a number by this tag.
    #[must_use]
    pub fn mark(self, bits: u128) -> u128 {
        bits & !Self::MASK | u128::from(self.0)
    }
}

impl fmt::Display for HostTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0digits$x}", self.0, digits = Self::DIGITS)
    }
}

impl TryFrom<String> for HostTag {
    type Error = InvalidHostTag;

    fn try_from(text: String) -> Result<Self, InvalidHostTag> {
        Self::of_id(&text).filter(|_| text.len() == Self::DIGITS).ok_or(InvalidHostTag)
    }
}

impl From<HostTag> for String {
    fn from(tag: HostTag) -> Self {
        tag.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_of_an_id_are_the_tag_of_its_host() {
        let tag = HostTag::of_bits(0x1234_00ab_cdef_0123);
        assert_eq!(tag.to_string(), "abcdef0123");
        let marked = tag.mark(u128::MAX);
        assert_eq!(format!("{marked:032x}"), "ffffffffffffffffffffffabcdef0123");
        assert_eq!(HostTag::of_execution(ExecutionId(marked)), tag);
        for (id, expected) in [
            ("ffffffffffffffffffffffabcdef0123", Some(tag)),
            ("0190a1b2-c3d4-7e5f-8a9b-c0abcdef0123", Some(tag)),
            ("abcdef0123", Some(tag)),
            ("0000000001", Some(HostTag::of_bits(1))),
            ("bcdef0123", None),
            ("ABCDEF0123", None),
            ("+bcdef0123", None),
            ("äbcdef0123", None),
            ("", None),
        ] {
            assert_eq!(HostTag::of_id(id), expected, "{id}");
        }
    }

    #[test]
    fn a_tag_is_written_as_ten_digits() {
        let tag = HostTag::of_bits(0x1f);
        let text = serde_json::to_string(&tag).expect("it can be written");
        assert_eq!(text, "\"000000001f\"");
        assert_eq!(serde_json::from_str::<HostTag>(&text).expect("it can be read"), tag);
        assert!(serde_json::from_str::<HostTag>("\"00000000001f\"").is_err());
    }
}
