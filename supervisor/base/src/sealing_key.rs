//! A key that encrypts what is stored outside of this process, such as the credentials of users.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

/// Minimum length of the secret of which the key is derived, in bytes: as many as the key has.
const SECRET_BYTES_MIN: usize = 32;
/// The first byte of each encrypted text.
const VERSION: u8 = 1;

/// What a key encrypts. Keys of one secret for several purposes are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The credentials of users for upstream servers.
    UserCredentials,
    /// What the hosts of a cluster share.
    SharedItems,
}

impl Purpose {
    /// Returns what HKDF derives the key of, beside the secret.
    fn info(self) -> &'static [u8] {
        match self {
            Self::UserCredentials => b"lockhouse: credentials of users, version 1",
            Self::SharedItems => b"lockhouse: what the hosts of a cluster share, version 1",
        }
    }
}

/// Why no key can be derived of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealingKeyError {
    #[error(
        "the secret has less than 32 bytes; make one with: head -c 32 /dev/urandom | base64 | systemd-creds encrypt - FILE"
    )]
    TooShort,
    #[error("the crypto library fails")]
    Crypto,
}

/// A key that encrypts with AES-256-GCM. Clones share it.
#[derive(Clone)]
pub struct SealingKey(Arc<RandomizedNonceKey>);

impl SealingKey {
    /// Derives the key of a secret, with HKDF.
    ///
    /// # Errors
    /// The secret is too short, or the crypto library fails.
    pub fn derive(secret: &str, purpose: Purpose) -> Result<Self, SealingKeyError> {
        let secret = secret.trim();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(SealingKeyError::TooShort);
        }
        let mut key = [0; 32];
        let pseudorandom = Salt::new(HKDF_SHA256, &[]).extract(secret.as_bytes());
        let derived =
            pseudorandom.expand(&[purpose.info()], &AES_256_GCM).and_then(|derived| derived.fill(&mut key));
        derived.map_err(|_| SealingKeyError::Crypto)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| SealingKeyError::Crypto)?;
        Ok(Self(Arc::new(key)))
    }

    /// Encrypts a text, which only [`Self::decrypt`] with the same context decrypts. `None` if the crypto library fails.
    pub fn encrypt(&self, context: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut encrypted = text.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(context), &mut encrypted).ok()?;
        Some([&[VERSION], nonce.as_ref().as_slice(), &encrypted].concat())
    }

    /// Decrypts a text. `None` if it was not encrypted with this key and this context, or was changed.
    pub fn decrypt(&self, context: &[u8], encrypted: Vec<u8>) -> Option<Vec<u8>> {
        let (nonce, text) = encrypted.strip_prefix(&[VERSION])?.split_at_checked(NONCE_LEN)?;
        let (nonce, mut text) = (Nonce::try_assume_unique_for_key(nonce).ok()?, text.to_vec());
        let length = self.0.open_in_place(nonce, Aad::from(context), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

/// Prints nothing of the key.
impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> SealingKey {
        SealingKey::derive(secret, Purpose::UserCredentials).expect("a key")
    }

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn what_is_encrypted_is_decrypted_with_the_same_key_and_context_only() {
        let encrypted = key(SECRET).encrypt(b"ada", b"SECRET").expect("encrypted");
        assert!(!encrypted.windows(6).any(|part| part == b"SECRET"));
        assert_eq!(key(SECRET).decrypt(b"ada", encrypted.clone()).as_deref(), Some(b"SECRET".as_slice()));
        assert_eq!(key(SECRET).decrypt(b"bob", encrypted.clone()), None);
        assert_eq!(key(&SECRET.to_uppercase()).decrypt(b"ada", encrypted.clone()), None);
        for place in 0..encrypted.len() {
            let mut changed = encrypted.clone();
            changed[place] ^= 1;
            assert_eq!(key(SECRET).decrypt(b"ada", changed), None, "byte {place}");
            assert_eq!(key(SECRET).decrypt(b"ada", encrypted[..place].to_vec()), None, "{place} bytes");
        }
    }

    #[test]
    fn equal_texts_are_encrypted_differently() {
        let encrypt = || key(SECRET).encrypt(b"ada", b"SECRET");
        assert_ne!(encrypt(), encrypt());
    }

    #[test]
    fn keys_for_other_purposes_are_different() {
        let other = SealingKey::derive(SECRET, Purpose::SharedItems).expect("a key");
        let encrypted = key(SECRET).encrypt(b"ada", b"SECRET").expect("encrypted");
        assert_eq!(other.decrypt(b"ada", encrypted), None);
    }

    #[test]
    fn a_short_secret_is_refused() {
        let refused = SealingKey::derive(&SECRET[1..], Purpose::UserCredentials).err();
        assert_eq!(refused, Some(SealingKeyError::TooShort));
    }
}
