//! The key that signs checkpoints, and the salt of hashes: made once for each user, and kept in files of one reader.

use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::{self, SystemRandom};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use lockhouse_base::files;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// PKCS#8.
const KEY_FILE: &str = "audit-key";
const SALT_FILE: &str = "audit-salt";
const SALT_BYTES: usize = 32;
/// A key of this kind has 83 bytes.
const FILE_BYTES_MAX: u64 = 1024;
/// The files in a directory that hold secrets of the audit log.
pub fn key_files(directory: &std::path::Path) -> [std::path::PathBuf; 2] {
    [KEY_FILE, SALT_FILE].map(|name| directory.join(name))
}

/// Keeps what is signed here apart from anything else that is ever signed with the same key.
const DOMAIN: &[u8] = b"lockhouse audit 1\n";

/// Why there is no key or no salt.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{path} cannot be read or made: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} holds no key of the kind that signs the audit log; move it away, and another one is made")]
    NoKey(PathBuf),
}

/// What signs, and what salts.
#[derive(Debug)]
pub(super) struct Secrets {
    key: Ed25519KeyPair,
    salt: hmac::Key,
}

impl Secrets {
    /// Those of this directory, made if they are not there. Of several processes that make them one wins.
    pub(super) fn of(directory: &Path) -> Result<Self, SecretError> {
        let make_key = || Ok(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())?.as_ref().to_vec());
        let (path, key) = read_or_make(directory, KEY_FILE, make_key)?;
        let key = Ed25519KeyPair::from_pkcs8(&key).map_err(|_| SecretError::NoKey(path))?;
        let make_salt = || {
            let mut salt = vec![0; SALT_BYTES];
            rand::fill(&mut salt)?;
            Ok(salt)
        };
        let (_, salt) = read_or_make(directory, SALT_FILE, make_salt)?;
        Ok(Self { key, salt: hmac::Key::new(hmac::HMAC_SHA256, &salt) })
    }

    pub(super) fn public_key(&self) -> PublicKey {
        PublicKey(self.key.public_key().as_ref().to_vec())
    }

    pub(super) fn sign(&self, text: &[u8]) -> Vec<u8> {
        self.key.sign(&[DOMAIN, text].concat()).as_ref().to_vec()
    }

    /// The same bytes have the same hash, and nobody without the salt can try out which they were.
    pub(super) fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.salt, bytes).as_ref().to_vec()
    }
}

fn read_or_make(
    directory: &Path,
    name: &str,
    make: impl FnOnce() -> Result<Vec<u8>, aws_lc_rs::error::Unspecified>,
) -> Result<(PathBuf, Vec<u8>), SecretError> {
    let path = directory.join(name);
    let told = |source| SecretError::File { path: path.clone(), source };
    let content = match files::read_bytes_bounded(&path, FILE_BYTES_MAX).map_err(told)? {
        Some(content) => content,
        None => {
            let made = make().map_err(|_| told(io::Error::other("there are no random numbers")))?;
            files::create_for_good(&path, &made).map_err(told)?
        }
    };
    Ok((path, content))
}

/// What verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// From 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().filter(|bytes| bytes.len() == 32).map(Self)
    }

    pub fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// The one of this directory, if there is one.
    pub fn of(directory: &Path) -> Result<Option<Self>, SecretError> {
        let path = directory.join(KEY_FILE);
        let told = |source| SecretError::File { path: path.clone(), source };
        let Some(key) = files::read_bytes_bounded(&path, FILE_BYTES_MAX).map_err(told)? else {
            return Ok(None);
        };
        let key = Ed25519KeyPair::from_pkcs8(&key).map_err(|_| SecretError::NoKey(path))?;
        Ok(Some(Self(key.public_key().as_ref().to_vec())))
    }

    /// Whether the owner of the key signed this text.
    pub(super) fn verifies(&self, text: &[u8], signature: &str) -> bool {
        let Ok(signature) = HEXLOWER_PERMISSIVE.decode(signature.as_bytes()) else { return false };
        UnparsedPublicKey::new(&ED25519, &self.0).verify(&[DOMAIN, text].concat(), &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_verifies_what_it_signed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(PublicKey::of(directory.path()).expect("readable").is_none());
        let one = Secrets::of(directory.path()).expect("made");
        let again = Secrets::of(directory.path()).expect("read");
        assert_eq!(one.public_key(), again.public_key());
        assert_eq!(one.hash(b"1234"), again.hash(b"1234"));
        let signature = HEXLOWER.encode(&again.sign(b"text"));
        let key = PublicKey::of(directory.path()).expect("readable").expect("there");
        assert_eq!(PublicKey::from_hex(&key.to_hex()).as_ref(), Some(&key));
        assert!(key.verifies(b"text", &signature));
        assert!(!key.verifies(b"texts", &signature) && !key.verifies(b"text", "00é"));
        let elsewhere = tempfile::tempdir().expect("a directory");
        let other = Secrets::of(elsewhere.path()).expect("made");
        assert!(!other.public_key().verifies(b"text", &signature));
        assert_ne!(other.hash(b"1234"), one.hash(b"1234"));
        std::fs::write(directory.path().join(KEY_FILE), "no key").expect("a file");
        assert!(matches!(Secrets::of(directory.path()), Err(SecretError::NoKey(_))));
    }
}
