//! Verification of the audit log: the members of a record that it uses.

use data_encoding::HEXLOWER;
use serde::Deserialize;

use super::super::hash_chain::Hash;
use super::super::log_rekey::rekey_text;
use super::super::signing::PublicKey;

/// The JSON members of an audit record that verification uses.
#[derive(Debug, Deserialize)]
pub(super) struct ChainMembers {
    pub(super) seq: u64,
    #[serde(deserialize_with = "deserialize_hash")]
    pub(super) prev: Hash,
    pub(super) event: String,
    #[serde(default)]
    pub(super) version: u32,
    #[serde(default)]
    pub(super) segment: String,
    #[serde(default)]
    pub(super) key: String,
    /// The key of the next signed line.
    pub(super) next: Option<String>,
    /// The key whose signature of this line is valid.
    #[serde(skip)]
    pub(super) signer: Option<PublicKey>,
    pub(super) previous: Option<String>,
    /// Number of records that could not be written. This and the next two fields are members of a `gap` record.
    #[serde(default)]
    pub(super) records: u64,
    #[serde(default)]
    pub(super) torn: u64,
    #[serde(default)]
    pub(super) reason: String,
    /// What the clock showed before and after a jump, and the size of the jump. These are members of a `clock` record.
    #[serde(default)]
    pub(super) from: String,
    #[serde(default)]
    pub(super) to: String,
    #[serde(default)]
    pub(super) difference_s: f64,
    /// Language of the program. This and the next two fields are members of an `execution` or `skill` record.
    pub(super) language: Option<String>,
    pub(super) code: Option<String>,
    pub(super) code_kept: Option<String>,
    /// Hash of a segment's first line. This and the next two fields are members of records in the index of segments.
    #[serde(default)]
    pub(super) first: String,
    #[serde(default)]
    pub(super) last: String,
    #[serde(default)]
    pub(super) last_seq: u64,
    /// The key of an administrator, and its signature of a key that replaces a lost one. These are members of a `rekey` line.
    administrator: Option<String>,
    countersignature: Option<String>,
}

impl ChainMembers {
    /// Returns the administrator's key that countersigned this line: the new key, the lost one, and the place in the chain.
    pub(super) fn countersigned_by(&self, lost: &str, administrators: &[PublicKey]) -> Option<PublicKey> {
        let (named, signature) = (self.administrator.as_deref()?, self.countersignature.as_deref()?);
        let key = administrators.iter().find(|key| key.to_hex() == named)?;
        key.verifies(rekey_text(self.prev, lost, &self.key).as_bytes(), signature).then(|| key.clone())
    }
}

fn deserialize_hash<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    use serde::de::Error as _;
    let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
    hash_from_hex(&text).ok_or_else(|| D::Error::custom("no hash"))
}

/// Parses a hash of 64 lower-case hexadecimal digits. Returns `None` for any other text.
pub(super) fn hash_from_hex(text: &str) -> Option<Hash> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}
