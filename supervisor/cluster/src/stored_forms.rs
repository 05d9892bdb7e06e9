//! The forms of keys and values that several tables have. Hosts of two versions use one state, so these forms must stay.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use lockhouse_messages::HostTag;
use sha2::{Digest as _, Sha256};

/// Number of bytes of a digest in a key.
const KEY_BYTES: usize = 16;

/// Returns the part of a key for a text of any length and form: its digest, which does not show the text.
pub(crate) fn digest_key(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..KEY_BYTES])
}

/// Returns the tag of a host as a value.
pub(crate) fn tag_value(tag: HostTag) -> Bytes {
    tag.to_string().into()
}

/// Returns the tag of a host that a value has. `None` if the value is no tag.
pub(crate) fn tag_of_value(value: &[u8]) -> Option<HostTag> {
    HostTag::try_from(String::from_utf8(value.to_vec()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_the_forms_that_hosts_of_other_versions_know() {
        // printf notes | sha256sum
        assert_eq!(digest_key("notes"), "ab5aa97074c454a0632057e704220d9a");
        let tag = HostTag::of_bits(0x1f);
        assert_eq!(tag_value(tag), "000000001f");
        assert_eq!(tag_of_value(b"000000001f"), Some(tag));
        for value in [&b""[..], b"\xff00000001f", b"00000000001f", b"{\"host\":\"000000001f\"}"] {
            assert_eq!(tag_of_value(value), None, "{value:?}");
        }
    }
}
