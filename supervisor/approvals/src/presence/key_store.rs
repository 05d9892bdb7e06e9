//! The file of the registered keys. It is read again for each use, because several processes of one account may share it.

use std::path::{Path, PathBuf};

use lockhouse_base::files::{read_bounded, replace_durably};
use lockhouse_messages::KeyListing;
use serde::{Deserialize, Serialize};

use super::PresenceError;
use super::signature::KeyAlgorithm;

/// Maximum number of registered keys of one engine.
/// Bound: approvals and questions.
const KEYS_MAX: usize = 16;
/// Maximum size of the file of registered keys, in bytes.
/// Bound: approvals and questions.
const FILE_BYTES_MAX: u64 = 256 * 1024;
const VERSION: u32 = 1;

/// A registered key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredKey {
    /// The id of the credential.
    pub(super) credential: String,
    /// The DER `SubjectPublicKeyInfo`.
    pub(super) public_key: String,
    pub(super) algorithm: KeyAlgorithm,
    /// In hexadecimal digits.
    pub(super) aaguid: String,
    /// The largest count of signatures that the key has reported.
    pub(super) counter: u32,
    /// When it was registered: UTC, as RFC 3339.
    pub(super) enrolled: String,
}

impl StoredKey {
    pub(super) fn listing(&self) -> KeyListing {
        KeyListing {
            credential: self.credential.clone(),
            aaguid: self.aaguid.clone(),
            counter: self.counter,
            enrolled: self.enrolled.clone(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    version: u32,
    keys: Vec<StoredKey>,
}

/// The file of the registered keys.
#[derive(Debug, Default)]
pub(super) struct KeyStore(Option<PathBuf>);

impl KeyStore {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Returns the registered keys. A file that does not exist has none.
    pub(super) fn read(&self) -> Result<Vec<StoredKey>, PresenceError> {
        let Some(path) = &self.0 else { return Ok(Vec::new()) };
        let failed = |reason: &dyn std::fmt::Display| {
            tracing::error!("{} cannot be used: {reason}", path.display());
            PresenceError::Storage
        };
        let Some(text) = read_bounded(path, FILE_BYTES_MAX).map_err(|error| failed(&error))? else {
            return Ok(Vec::new());
        };
        let file: KeysFile = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        match file.version {
            VERSION => Ok(file.keys),
            _ => Err(failed(&"it is of another version of Lockhouse")),
        }
    }

    pub(super) fn write(&self, keys: &[StoredKey]) -> Result<(), PresenceError> {
        let path = self.0.as_ref().ok_or(PresenceError::Storage)?;
        let file = KeysFile { version: VERSION, keys: keys.to_vec() };
        let text = serde_json::to_vec_pretty(&file).map_err(|_| PresenceError::Storage)?;
        replace_durably(path, &text).map_err(|error| {
            tracing::error!("{} cannot be written: {error}", path.display());
            PresenceError::Storage
        })
    }

    /// Adds a key. `record` writes the record of it before.
    pub(super) fn add(
        &self,
        key: StoredKey,
        record: impl FnOnce() -> Result<(), PresenceError>,
    ) -> Result<(), PresenceError> {
        let mut keys = self.read()?;
        if keys.iter().any(|known| known.credential == key.credential) {
            return Err(PresenceError::KnownKey);
        }
        if keys.len() >= KEYS_MAX {
            return Err(PresenceError::TooManyKeys);
        }
        record()?;
        keys.push(key);
        self.write(&keys)
    }
}
