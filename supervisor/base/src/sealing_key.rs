//! A key that encrypts what is stored outside of this process, such as the credentials of users.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};

/// Minimum length of the secret of which the key is derived, in bytes: as many as the key has.
const SECRET_BYTES_MIN: usize = 32;
/// The first byte of each encrypted text.
const VERSION: u8 = 1;
/// Number of bytes before an encrypted text: the version and the nonce.
const HEAD_BYTES: usize = 1 + NONCE_LEN;

/// The kind of data that a key encrypts. Keys of one secret for several purposes are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The credentials of users for upstream servers.
    UserCredentials,
    /// Items that the hosts of a cluster share.
    SharedItems,
    /// The copies of stored results outside of the hosts of a cluster. Each has a key of its own: see [`SealingKeys`].
    ValueCopies,
}

impl Purpose {
    /// Returns the context of HKDF, which makes the keys of different purposes different.
    fn info(self) -> &'static [u8] {
        match self {
            Self::UserCredentials => b"lockhouse: credentials of users, version 1",
            Self::SharedItems => b"lockhouse: what the hosts of a cluster share, version 1",
            Self::ValueCopies => b"lockhouse: copies of stored results, version 1",
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
        Self::expand(&pseudorandom(secret)?, &[purpose.info()])
    }

    fn expand(pseudorandom: &Prk, info: &[&[u8]]) -> Result<Self, SealingKeyError> {
        let mut key = [0; 32];
        let derived = pseudorandom.expand(info, &AES_256_GCM).and_then(|derived| derived.fill(&mut key));
        derived.map_err(|_| SealingKeyError::Crypto)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| SealingKeyError::Crypto)?;
        Ok(Self(Arc::new(key)))
    }

    /// Encrypts a text, which only [`Self::decrypt`] with the same context decrypts. `None` if the crypto library fails.
    pub fn encrypt(&self, context: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let mut encrypted = Vec::with_capacity(HEAD_BYTES + text.len() + AES_256_GCM.tag_len());
        encrypted.push(VERSION);
        encrypted.resize(HEAD_BYTES, 0);
        encrypted.extend_from_slice(text);
        let (head, text) = encrypted.split_at_mut_checked(HEAD_BYTES)?;
        let (nonce, tag) = self.0.seal_in_place_separate_tag(Aad::from(context), text).ok()?;
        head.get_mut(1..)?.copy_from_slice(nonce.as_ref());
        encrypted.extend_from_slice(tag.as_ref());
        Some(encrypted)
    }

    /// Decrypts a text, in its own memory. `None` if it was not encrypted with this key and this context, or was changed.
    pub fn decrypt(&self, context: &[u8], mut encrypted: Vec<u8>) -> Option<Vec<u8>> {
        let (head, text) = encrypted.split_at_mut_checked(HEAD_BYTES)?;
        let nonce = Nonce::try_assume_unique_for_key(head.strip_prefix(&[VERSION])?).ok()?;
        let length = self.0.open_in_place(nonce, Aad::from(context), text).ok()?.len();
        encrypted.truncate(HEAD_BYTES + length);
        encrypted.drain(..HEAD_BYTES);
        Some(encrypted)
    }
}

/// Derives the keys of single items, each from the secret of all keys and the secret name of its item. Whoever has only the secret of all
/// keys cannot decrypt an item.
#[derive(Clone)]
pub struct SealingKeys {
    pseudorandom: Prk,
    purpose: Purpose,
}

impl SealingKeys {
    /// Begins to derive keys of a secret.
    ///
    /// # Errors
    /// The secret is too short.
    pub fn derive(secret: &str, purpose: Purpose) -> Result<Self, SealingKeyError> {
        Ok(Self { pseudorandom: pseudorandom(secret)?, purpose })
    }

    /// Returns the key of the item with this name. `None` if the crypto library fails.
    pub fn key(&self, name: &str) -> Option<SealingKey> {
        SealingKey::expand(&self.pseudorandom, &[self.purpose.info(), b": ", name.as_bytes()]).ok()
    }
}

fn pseudorandom(secret: &str) -> Result<Prk, SealingKeyError> {
    let secret = secret.trim();
    if secret.len() < SECRET_BYTES_MIN {
        return Err(SealingKeyError::TooShort);
    }
    Ok(Salt::new(HKDF_SHA256, &[]).extract(secret.as_bytes()))
}

/// Prints nothing of the secret.
impl std::fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKeys")
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
        for purpose in [Purpose::SharedItems, Purpose::ValueCopies] {
            let other = SealingKey::derive(SECRET, purpose).expect("a key");
            let encrypted = key(SECRET).encrypt(b"ada", b"SECRET").expect("encrypted");
            assert_eq!(other.decrypt(b"ada", encrypted), None);
        }
    }

    #[test]
    fn each_item_has_a_key_of_its_own() {
        let keys = SealingKeys::derive(SECRET, Purpose::ValueCopies).expect("keys");
        let encrypted = keys.key("a").and_then(|key| key.encrypt(b"", b"SECRET")).expect("encrypted");
        let decrypted = |key: Option<SealingKey>| key.expect("a key").decrypt(b"", encrypted.clone());
        assert_eq!(decrypted(keys.key("a")).as_deref(), Some(b"SECRET".as_slice()));
        assert_eq!(decrypted(keys.key("b")), None);
        assert_eq!(decrypted(SealingKey::derive(SECRET, Purpose::ValueCopies).ok()), None);
        let other = SealingKeys::derive(SECRET, Purpose::SharedItems).expect("keys");
        assert_eq!(decrypted(other.key("a")), None);
    }

    #[test]
    fn a_short_secret_is_refused() {
        let refused = SealingKey::derive(&SECRET[1..], Purpose::UserCredentials).err();
        assert_eq!(refused, Some(SealingKeyError::TooShort));
    }
}
