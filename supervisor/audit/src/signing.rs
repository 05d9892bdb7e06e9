//! The audit log's key, which signs records such as checkpoints, and its salt for keyed hashes. Both are created once
//! per user, in private files.

use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use lockhouse_base::files;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// Name of the file that contains the signing key, as PKCS#8.
const KEY_FILE: &str = "audit-key";
const SALT_FILE: &str = "audit-salt";
/// Maximum size, in bytes, of the file with the signing key, and of the file with the salt. A file with an Ed25519 key
/// has 83 bytes.
const FILE_BYTES_MAX: u64 = 1024;
/// Returns the paths of the two files in a directory that contain secrets of the audit log: the signing key and the
/// salt.
pub fn key_files(directory: &std::path::Path) -> [std::path::PathBuf; 2] {
    [KEY_FILE, SALT_FILE].map(|name| directory.join(name))
}

/// Prefix of all bytes that the key signs (domain separation). Because of the prefix, a signature of the audit log is
/// not valid for anything else that the same key might sign.
const DOMAIN: &[u8] = b"lockhouse audit 1\n";

/// Why the audit log's signing key or salt cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{path} cannot be read or created: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} contains no Ed25519 key for the audit log; move the file away and a new key is created")]
    InvalidKey(PathBuf),
}

/// The audit log's signing key, and the salt for its keyed hashes.
#[derive(Debug)]
pub(super) struct SigningKeys {
    key: Ed25519KeyPair,
    salt: hmac::Key,
}

impl SigningKeys {
    /// Loads the signing key and the salt from files in a directory, and creates missing files. If several processes
    /// create the same file at the same time, all of them use the content that was stored first.
    pub(super) fn load_or_create(directory: &Path) -> Result<Self, KeyError> {
        let (path, key) = read_or_make(directory, KEY_FILE, make_key)?;
        let key = Ed25519KeyPair::from_pkcs8(&key).map_err(|_| KeyError::InvalidKey(path))?;
        let (_, salt) = read_or_make(directory, SALT_FILE, || Ok(random_bytes()?.to_vec()))?;
        Ok(Self { key, salt: hmac::Key::new(hmac::HMAC_SHA256, &salt) })
    }

    pub(super) fn public_key(&self) -> PublicKey {
        PublicKey(self.key.public_key().as_ref().to_vec())
    }

    pub(super) fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.key.sign(&[DOMAIN, text].concat()).as_ref().to_vec()
    }

    /// Returns a keyed hash (HMAC) of `bytes`. Without the salt, nobody can find out the hashed bytes by hashing
    /// guesses.
    pub(super) fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.salt, bytes).as_ref().to_vec()
    }
}

/// Returns 32 random bytes from the kernel. The random number generator of the crate aws-lc is not used,
/// because its first use would cost each process some 70 ms of CPU time to gather entropy.
fn random_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Generates a signing key, as PKCS#8.
fn make_key() -> io::Result<Vec<u8>> {
    let rejected = |_| io::Error::other("the random numbers make no key");
    let key =
        Ed25519KeyPair::from_seed_unchecked(&random_bytes()?).map_err(|error| rejected(error.to_string()))?;
    Ok(key.to_pkcs8().map_err(|error| rejected(error.to_string()))?.as_ref().to_vec())
}

fn read_or_make(
    directory: &Path,
    name: &str,
    make: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<(PathBuf, Vec<u8>), KeyError> {
    let path = directory.join(name);
    let to_key_error = |source| KeyError::File { path: path.clone(), source };
    let content = match files::read_bytes_bounded(&path, FILE_BYTES_MAX).map_err(to_key_error)? {
        Some(content) => content,
        None => {
            let made = make().map_err(to_key_error)?;
            files::create_durably(&path, &made).map_err(to_key_error)?
        }
    };
    Ok((path, content))
}

/// The public key with which signatures of the audit log are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Parses a public key of 64 hexadecimal digits. Returns `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().filter(|bytes| bytes.len() == 32).map(Self)
    }

    pub fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// Reads the signing key in a directory and returns its public key. Returns `None` if there is no signing key.
    pub fn load(directory: &Path) -> Result<Option<Self>, KeyError> {
        let path = directory.join(KEY_FILE);
        let to_key_error = |source| KeyError::File { path: path.clone(), source };
        let Some(key) = files::read_bytes_bounded(&path, FILE_BYTES_MAX).map_err(to_key_error)? else {
            return Ok(None);
        };
        let key = Ed25519KeyPair::from_pkcs8(&key).map_err(|_| KeyError::InvalidKey(path))?;
        Ok(Some(Self(key.public_key().as_ref().to_vec())))
    }

    /// Whether the signature `signature`, in hexadecimal, is a valid signature of the text by this key.
    pub(super) fn verifies(&self, text: &[u8], signature: &str) -> bool {
        let Ok(signature) = HEXLOWER_PERMISSIVE.decode(signature.as_bytes()) else { return false };
        UnparsedPublicKey::new(&ED25519, &self.0).verify(&[DOMAIN, text].concat(), &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_created_once_and_verifies_only_its_own_signatures() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(PublicKey::load(directory.path()).expect("readable").is_none());
        let one = SigningKeys::load_or_create(directory.path()).expect("made");
        let again = SigningKeys::load_or_create(directory.path()).expect("read");
        assert_eq!(one.public_key(), again.public_key());
        assert_eq!(one.hash(b"1234"), again.hash(b"1234"));
        let signature = HEXLOWER.encode(&again.sign(b"text"));
        let key = PublicKey::load(directory.path()).expect("readable").expect("there");
        assert_eq!(PublicKey::from_hex(&key.to_hex()).as_ref(), Some(&key));
        assert!(key.verifies(b"text", &signature));
        assert!(!key.verifies(b"texts", &signature) && !key.verifies(b"text", "00é"));
        let elsewhere = tempfile::tempdir().expect("a directory");
        let other = SigningKeys::load_or_create(elsewhere.path()).expect("made");
        assert!(!other.public_key().verifies(b"text", &signature));
        assert_ne!(other.hash(b"1234"), one.hash(b"1234"));
        std::fs::write(directory.path().join(KEY_FILE), "no key").expect("a file");
        assert!(matches!(SigningKeys::load_or_create(directory.path()), Err(KeyError::InvalidKey(_))));
    }
}
