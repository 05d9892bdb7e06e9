//! The challenges that were issued and not used yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::subject::ApprovalSubject;
use super::{PresenceError, random};

/// How long a challenge of a key is valid.
/// Bound: approvals and questions.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of challenges that are valid at one time. A further one replaces the oldest.
/// Bound: approvals and questions.
const CHALLENGES_MAX: usize = 64;
/// The first part of what is hashed for a challenge, so that no hash for another purpose is one.
const LABEL: &str = "lockhouse approval 1";

/// The challenges that were issued and not used yet.
#[derive(Debug, Default)]
pub(super) struct Challenges(VecDeque<IssuedChallenge>);

/// A challenge, with what it is for.
#[derive(Debug)]
pub(super) struct IssuedChallenge {
    challenge: [u8; 32],
    subject: ApprovalSubject,
    /// The port of the page that has asked for it.
    port: u16,
    expires: Instant,
}

impl Challenges {
    pub(super) fn issue(
        &mut self,
        subject: ApprovalSubject,
        port: u16,
        now: Instant,
    ) -> Result<[u8; 32], PresenceError> {
        let nonce: [u8; 32] = random()?;
        let challenge = challenge_of(&nonce, &subject);
        self.0.retain(|issued| now < issued.expires);
        if self.0.len() >= CHALLENGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(IssuedChallenge { challenge, subject, port, expires: now + LIFETIME });
        Ok(challenge)
    }

    /// Removes a challenge that is valid, and returns it.
    pub(super) fn take(
        &mut self,
        challenge: &[u8; 32],
        now: Instant,
    ) -> Result<IssuedChallenge, PresenceError> {
        self.0.retain(|issued| now < issued.expires);
        let at = self.0.iter().position(|issued| issued.challenge == *challenge);
        at.and_then(|at| self.0.remove(at)).ok_or(PresenceError::UnknownChallenge)
    }
}

impl IssuedChallenge {
    /// Verifies that the challenge was issued for this subject.
    pub(super) fn matches(&self, subject: &ApprovalSubject) -> Result<(), PresenceError> {
        match self.subject == *subject {
            true => Ok(()),
            false => Err(PresenceError::OtherSubject),
        }
    }

    /// Returns the port of the page that has asked for the challenge.
    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// Returns what a key must sign: the hash of a random number, and of the digest and the scope of the subject.
fn challenge_of(nonce: &[u8; 32], subject: &ApprovalSubject) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(LABEL);
    hash.update(nonce);
    // A digest has no zero byte.
    for part in [subject.digest(), subject.scope()] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().into()
}
