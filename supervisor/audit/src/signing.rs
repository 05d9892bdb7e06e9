//! The keys of the audit log: Ed25519 keys, which sign records and lines of the index, and the salt for keyed hashes.

use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use lockhouse_base::files;
use zeroize::Zeroizing;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

pub(super) const SALT_FILE: &str = "audit-salt";
/// Maximum size, in bytes, of a file with a signing key, and of the file with the salt. A file with an Ed25519 key
/// has 83 bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1024;

/// Prefix of all bytes that the keys sign (domain separation). Because of the prefix, a signature of the audit log is
/// not valid for anything else that the same key might sign.
const DOMAIN: &[u8] = b"lockhouse audit 1\n";

/// Why a key of the audit log, or its salt, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{path} cannot be read or created: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} contains no Ed25519 key; move the file away and run `lockhouse audit rekey`")]
    InvalidKey(PathBuf),
    /// The index names the key of its next line, and no file has it.
    #[error(
        "no file {directory}/audit-key* has the key that must sign the next line of the audit log ({expected}): it was removed, or \
         comes from another time than the log; `lockhouse audit rekey` begins a new key"
    )]
    Lost { directory: PathBuf, expected: String },
}

/// A private key of the audit log. Its memory is overwritten when it is dropped.
#[derive(Debug)]
pub(super) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Generates a key. Its random numbers come from the kernel, and not from the generator of the crate aws-lc, whose
    /// first use would cost each process some 70 ms of CPU time to gather entropy.
    pub(super) fn generate() -> io::Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut())?;
        let key = Ed25519KeyPair::from_seed_unchecked(seed.as_ref());
        key.map(Self).map_err(|error| io::Error::other(format!("the random numbers make no key: {error}")))
    }

    /// Reads a private key in a file, as PKCS#8. Returns `None` if the file does not exist.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let read = files::read_bytes_bounded(path, FILE_BYTES_MAX);
        let content = read.map_err(|source| KeyError::File { path: path.to_owned(), source })?;
        let Some(content) = content.map(Zeroizing::new) else { return Ok(None) };
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&content);
        key.map(|key| Some(Self(key))).map_err(|_| KeyError::InvalidKey(path.to_owned()))
    }

    pub(super) fn to_pkcs8(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        let encoded = self.0.to_pkcs8().map_err(|_| io::Error::other("the key cannot be encoded"))?;
        Ok(Zeroizing::new(encoded.as_ref().to_vec()))
    }

    pub(super) fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }

    pub(super) fn sign(&self, text: &[u8]) -> String {
        HEXLOWER.encode(self.0.sign(&[DOMAIN, text].concat()).as_ref())
    }
}

/// The salt of the keyed hashes in audit records.
#[derive(Debug)]
pub(super) struct Salt(hmac::Key);

impl Salt {
    /// Loads the salt from its file in a directory, which is created if it is missing. If several processes create it at
    /// the same time, all of them use the content that was stored first.
    pub(super) fn load_or_create(directory: &Path) -> Result<Self, KeyError> {
        let path = directory.join(SALT_FILE);
        let make = || -> io::Result<Vec<u8>> {
            if let Some(content) = files::read_bytes_bounded(&path, FILE_BYTES_MAX)? {
                return Ok(content);
            }
            let mut made = [0; 32];
            getrandom::fill(&mut made)?;
            files::create_durably(&path, &made)
        };
        let salt = make().map_err(|source| KeyError::File { path: path.clone(), source })?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &salt)))
    }

    /// Returns a keyed hash (HMAC) of `bytes`. Without the salt, nobody can find out the hashed bytes by hashing
    /// guesses.
    pub(super) fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.0, bytes).as_ref().to_vec()
    }
}

/// The public key with which signatures of the audit log are verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Parses a public key of 64 hexadecimal digits. Returns `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().filter(|bytes| bytes.len() == 32).map(Self)
    }

    pub fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
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
    fn a_key_verifies_only_its_own_signatures() {
        let (one, other) = (SigningKey::generate().expect("a key"), SigningKey::generate().expect("a key"));
        let signature = one.sign(b"text");
        let key = one.public_key();
        assert_eq!(PublicKey::from_hex(&key.to_hex()).as_ref(), Some(&key));
        assert!(key.verifies(b"text", &signature));
        assert!(!key.verifies(b"texts", &signature) && !key.verifies(b"text", "00é"));
        assert!(!other.public_key().verifies(b"text", &signature));
    }

    #[test]
    fn a_key_is_read_from_its_file_and_a_damaged_file_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit-key");
        assert!(SigningKey::load(&path).expect("readable").is_none());
        let key = SigningKey::generate().expect("a key");
        std::fs::write(&path, key.to_pkcs8().expect("encoded")).expect("written");
        let read = SigningKey::load(&path).expect("readable").expect("there");
        assert_eq!(read.public_key(), key.public_key());
        std::fs::write(&path, "no key").expect("a file");
        assert!(matches!(SigningKey::load(&path), Err(KeyError::InvalidKey(_))));
    }

    #[test]
    fn a_salt_is_created_once() {
        let (directory, elsewhere) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let salt = |directory: &Path| Salt::load_or_create(directory).expect("a salt").hash(b"1234");
        assert_eq!(salt(directory.path()), salt(directory.path()));
        assert_ne!(salt(directory.path()), salt(elsewhere.path()));
    }
}
