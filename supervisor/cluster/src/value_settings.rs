//! Where copies of stored values are, from the configuration table `[cluster.values]`.

use std::fmt;
use std::str::FromStr;

use lockhouse_base::sealing_key::SealingKeys;

use crate::server_addresses::StorageAddress;

/// Maximum length of the prefix of keys, in characters.
const PREFIX_CHARS_MAX: usize = 200;

/// The name of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketName(String);

/// A text is no name of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 3 to 63 of a-z, 0-9, '-' and '.'")]
pub struct InvalidBucketName;

impl BucketName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BucketName {
    type Err = InvalidBucketName;

    fn from_str(text: &str) -> Result<Self, InvalidBucketName> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let is_name = (3..=63).contains(&text.len()) && text.bytes().all(is_allowed);
        match is_name && !text.starts_with(['-', '.']) && !text.contains("..") {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidBucketName),
        }
    }
}

/// The folder of a bucket in which the copies are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(String);

/// A text is no prefix of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected at most {PREFIX_CHARS_MAX} of a-z, A-Z, 0-9, '-' and '_', in parts that '/' separates")]
pub struct InvalidKeyPrefix;

impl KeyPrefix {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyPrefix {
    type Err = InvalidKeyPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidKeyPrefix> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_allowed);
        match text.len() <= PREFIX_CHARS_MAX && text.split('/').all(is_part) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidKeyPrefix),
        }
    }
}

/// Where copies of values are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePlace {
    pub endpoint: StorageAddress,
    pub bucket: BucketName,
    /// The region that requests are signed for.
    pub region: String,
    pub prefix: KeyPrefix,
}

/// The keys that sign requests to the S3 server.
#[derive(Clone)]
pub struct StorageCredentials {
    pub access_key: String,
    pub secret_key: String,
}

/// Prints nothing of the keys.
impl fmt::Debug for StorageCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StorageCredentials")
    }
}

/// How this host copies the values that it stores.
#[derive(Clone, Debug)]
pub struct ValueSettings {
    pub place: ValuePlace,
    pub credentials: StorageCredentials,
    /// The keys that seal the copies, one for each handle.
    pub sealing: SealingKeys,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes_are_plain() {
        for (name, is_valid) in [
            ("lockhouse-values", true),
            ("a.b", true),
            ("ab", false),
            ("A-b", false),
            ("a..b", false),
            ("a/b", false),
        ] {
            assert_eq!(name.parse::<BucketName>().is_ok(), is_valid, "{name}");
        }
        for (prefix, is_valid) in [
            ("lockhouse", true),
            ("a/b_c", true),
            ("", false),
            ("/a", false),
            ("a/", false),
            ("a/../b", false),
        ] {
            assert_eq!(prefix.parse::<KeyPrefix>().is_ok(), is_valid, "{prefix}");
        }
    }

    #[test]
    fn credentials_are_not_printed() {
        let credentials =
            StorageCredentials { access_key: "AKIA1".to_owned(), secret_key: "SECRET".to_owned() };
        assert_eq!(format!("{credentials:?}"), "StorageCredentials");
    }
}
