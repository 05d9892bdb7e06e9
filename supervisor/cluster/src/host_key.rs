//! The key of this host, by which the others know it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use lockhouse_base::files;
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::crypto::aws_lc_rs::sign::any_supported_type;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

/// Maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024;

/// Why there is no key of this host.
#[derive(Debug, thiserror::Error)]
pub enum HostKeyError {
    #[error("the key of this host cannot be read or written at {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} has no key of a host; delete it, and the next start makes another key")]
    Invalid { path: PathBuf },
}

/// The key of this host.
#[derive(Clone, Debug)]
pub(crate) struct HostKey(pub(crate) Arc<CertifiedKey>);

impl HostKey {
    /// Reads the key from its file, or makes one.
    pub(crate) fn load(path: &Path) -> Result<Self, HostKeyError> {
        let fault = |source: io::Error| HostKeyError::File { path: path.to_owned(), source };
        let stored = match files::read_bytes_bounded(path, FILE_BYTES_MAX).map_err(fault)? {
            Some(stored) => stored,
            None => files::create_durably(path, &generate().map_err(fault)?).map_err(fault)?,
        };
        Self::of_pkcs8(stored).ok_or_else(|| HostKeyError::Invalid { path: path.to_owned() })
    }

    fn of_pkcs8(bytes: Vec<u8>) -> Option<Self> {
        let key = any_supported_type(&PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes))).ok()?;
        let public = CertificateDer::from(key.public_key()?.as_ref().to_vec());
        Some(Self(Arc::new(CertifiedKey::new(vec![public], key))))
    }

    /// Returns the public key, in DER (`SubjectPublicKeyInfo`).
    pub(crate) fn public(&self) -> &[u8] {
        self.0.cert.first().map(AsRef::as_ref).unwrap_or_default()
    }

    /// Signs a text with ECDSA on the curve P-256 and SHA-256. Returns the signature in ASN.1. `None` if the crypto library fails.
    pub(crate) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.0.key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256])?.sign(text).ok()
    }
}

fn generate() -> io::Result<Vec<u8>> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
    key.map(|key| key.as_ref().to_vec()).map_err(|_| io::Error::other("no key can be generated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_same_key_at_each_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state/cluster-key");
        let first = HostKey::load(&path).expect("a key");
        assert!(first.public().len() > 64);
        assert_eq!(HostKey::load(&path).expect("a key").public(), first.public());
        let other = HostKey::load(&directory.path().join("other")).expect("a key");
        assert_ne!(other.public(), first.public());
        std::fs::write(&path, "no key").expect("it is written");
        let error = HostKey::load(&path).expect_err("no key").to_string();
        assert!(
            error.ends_with(
                "cluster-key has no key of a host; delete it, and the next start makes another key"
            ),
            "{error}"
        );
    }
}
