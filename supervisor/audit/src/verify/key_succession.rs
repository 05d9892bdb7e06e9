//! Verification of the audit log: checks that each signed line is signed by the key that the one before it names, and that
//! the index has a trusted key.

use std::collections::HashSet;

use super::super::signing::PublicKey;
use super::chain_members::ChainMembers;

/// Maximum number of signatures that are checked to find the key of lines without a key: those of version 1.
/// Bound: the audit log.
const TRIES_MAX: u32 = 100_000;

/// The keys that may have signed lines without a key: those of version 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Version1Keys {
    keys: Vec<PublicKey>,
    tries: u32,
}

impl Version1Keys {
    pub(super) fn new(keys: Vec<PublicKey>) -> Self {
        Self { keys, tries: 0 }
    }

    pub(super) fn add(&mut self, key: PublicKey) {
        self.keys.insert(0, key);
    }

    /// Returns the key that signed the text. It is tried first for the next line, which usually has the same key.
    pub(super) fn signer(&mut self, text: &[u8], signature: &str) -> Option<PublicKey> {
        for at in 0..self.keys.len() {
            if self.tries >= TRIES_MAX && at > 0 {
                return None;
            }
            self.tries = self.tries.saturating_add(u32::from(at > 0));
            if self.keys[at].verifies(text, signature) {
                self.keys.swap(0, at);
                return self.keys.first().cloned();
            }
        }
        None
    }
}

/// The keys of the signed lines of one chain, in their order.
#[derive(Debug, Default)]
pub(super) struct KeySuccession {
    /// The key of the next signed line. `None` before the first line with a key, and after the end of a segment.
    pub(super) expected: Option<String>,
    has_keys: bool,
    /// The keys that signed lines.
    pub(super) signers: HashSet<String>,
}

impl KeySuccession {
    /// Checks the key of a signed line that names its key, and remembers the key of the next one. Returns false if the line
    /// before it names another key.
    pub(super) fn accepts(&mut self, members: &ChainMembers) -> bool {
        let is_expected = match &self.expected {
            Some(expected) => *expected == members.key,
            // The lines before it are of version 1: their key signs the first line that names its successor.
            None if !self.has_keys => self.signers.is_empty() || self.signers.contains(&members.key),
            None => false,
        };
        self.has_keys = true;
        self.expected.clone_from(&members.next);
        self.add_signer(members);
        is_expected
    }

    /// Remembers the signer of a line that does not say who signs the next one.
    pub(super) fn add_signer(&mut self, members: &ChainMembers) {
        self.signers.extend(members.signer.as_ref().map(PublicKey::to_hex));
    }

    /// Whether a line with a key was seen.
    pub(super) fn has_keys(&self) -> bool {
        self.has_keys
    }
}
