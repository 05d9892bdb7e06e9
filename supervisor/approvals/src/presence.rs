//! Verifies that a person is there who approves something: the only place that accepts proofs of presence. Nothing that
//! passes a proof on is believed, neither the live page nor its browser.

mod authenticator_data;
mod challenges;
mod client_data;
mod enrolment;
mod error;
mod key_store;
mod signature;
mod subject;

use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use aws_lc_rs::rand;
use data_encoding::BASE64URL_NOPAD;
use lockhouse_audit::{LocalUser, ProvenPresence};
use lockhouse_messages::{
    EnrolmentCode, KeyAssertion, KeyChallenge, KeyListing, KeyRegistration, PasswordMethod, Presence,
    PresenceProof,
};
use lockhouse_policies::RulePresence;
use nix::unistd::geteuid;
use parking_lot::Mutex;

use authenticator_data::{AuthenticatorData, NewCredential};
use challenges::Challenges;
use client_data::{Ceremony, ClientData};
use enrolment::Enrolment;
pub use error::PresenceError;
use key_store::{KeyStore, StoredKey};
use signature::KeyAlgorithm;
pub use subject::ApprovalSubject;

/// Maximum length of a part of an assertion or a registration in characters. An RSA key of 4,096 bits has less than 800.
/// Bound: approvals and questions.
const PART_CHARS_MAX: usize = 4_096;

/// Verifies proofs of presence, and has the registered keys.
#[derive(Debug, Default)]
pub struct PresenceVerifier {
    level: Presence,
    keys: KeyStore,
    challenges: Mutex<Challenges>,
    enrolment: Mutex<Enrolment>,
}

impl PresenceVerifier {
    /// `keys` is the file of the registered keys. Without it, no key can be registered.
    pub fn new(level: Presence, keys: Option<PathBuf>) -> Self {
        Self { level, keys: KeyStore::new(keys), ..Self::default() }
    }

    /// Returns what each approval must prove. A rule of the policy can require more for its calls.
    pub fn level(&self) -> Presence {
        self.level
    }

    /// Returns the file of the registered keys.
    pub fn file(&self) -> Option<&std::path::Path> {
        self.keys.path()
    }

    /// Verifies the proof of whoever approves something. `by` is the process that approves, as the kernel reports it. Returns
    /// `None` if no proof is required.
    pub(super) fn verify(
        &self,
        subject: &ApprovalSubject,
        required: Presence,
        proof: Option<&PresenceProof>,
        by: Option<LocalUser>,
    ) -> Result<Option<ProvenPresence>, PresenceError> {
        match (required, proof) {
            (Presence::None, _) if is_other_account(by) => Err(PresenceError::OnlyRootApproves),
            (Presence::None, _) => Ok(None),
            (Presence::Password | Presence::Key, Some(PresenceProof::Key(assertion))) => {
                self.verify_key(subject, assertion, Instant::now()).map(Some)
            }
            (Presence::Key, _) => Err(PresenceError::KeyRequired),
            (Presence::Password, Some(PresenceProof::Password { .. })) if !is_root(by) => {
                Err(PresenceError::NotRoot)
            }
            (Presence::Password, Some(PresenceProof::Password { uid: 0, .. })) => {
                Err(PresenceError::PasswordOfRoot)
            }
            (Presence::Password, Some(PresenceProof::Password { method, uid })) => {
                let method = match method {
                    PasswordMethod::Polkit => "polkit",
                    PasswordMethod::Sudo => "sudo",
                };
                Ok(Some(ProvenPresence { uid: Some(*uid), ..ProvenPresence::by(method) }))
            }
            (Presence::Password, None) if is_root(by) => Ok(Some(ProvenPresence::by("root"))),
            (Presence::Password, None) => Err(PresenceError::PasswordRequired),
        }
    }

    /// Verifies the proof of whoever accepts a change of what root administers, such as a policy. Root needs none, and without
    /// a required proof only root accepts it.
    ///
    /// # Errors
    /// [`PresenceError`].
    pub fn verify_acceptance(
        &self,
        subject: &ApprovalSubject,
        proof: Option<&PresenceProof>,
        by: Option<LocalUser>,
    ) -> Result<ProvenPresence, PresenceError> {
        match proof {
            None if is_root(by) => Ok(ProvenPresence::by("root")),
            _ if self.level.is_none() => Err(PresenceError::OnlyRoot),
            _ => self.verify(subject, self.level, proof, by)?.ok_or(PresenceError::OnlyRoot),
        }
    }

    /// Returns what a key must sign to approve something. `port` is that of the page which asks the key. The caller has verified
    /// that the subject can be approved.
    ///
    /// # Errors
    /// No key is registered, or the keys cannot be read.
    pub fn challenge(&self, subject: ApprovalSubject, port: u16) -> Result<KeyChallenge, PresenceError> {
        let credentials: Vec<String> = self.keys.read()?.into_iter().map(|key| key.credential).collect();
        if credentials.is_empty() {
            return Err(PresenceError::NoKeys);
        }
        let challenge = self.challenges.lock().issue(subject, port, Instant::now())?;
        let challenge = BASE64URL_NOPAD.encode(&challenge);
        Ok(KeyChallenge { challenge, credentials, seconds: challenges::LIFETIME.as_secs() })
    }

    fn verify_key(
        &self,
        subject: &ApprovalSubject,
        assertion: &KeyAssertion,
        now: Instant,
    ) -> Result<ProvenPresence, PresenceError> {
        let client_json = decode(&assertion.client_data)?;
        let client = ClientData::parse(&client_json)?;
        // Whatever else is wrong, the challenge cannot be used again.
        let expected = self.challenges.lock().take(&client.challenge()?, now)?;
        expected.matches(subject)?;
        client.verify(Ceremony::Get, |port| port == expected.port())?;
        let authenticator = decode(&assertion.authenticator_data)?;
        let data = AuthenticatorData::parse(&authenticator)?;
        data.verify()?;
        let mut keys = self.keys.read()?;
        let found = keys.iter_mut().find(|key| key.credential == assertion.credential);
        let key = found.ok_or(PresenceError::UnknownKey)?;
        let signature = decode(&assertion.signature)?;
        key.algorithm.verify(&decode(&key.public_key)?, &authenticator, &client_json, &signature)?;
        let counter = data.counter();
        if (counter, key.counter) != (0, 0) && counter <= key.counter {
            return Err(PresenceError::Counter);
        }
        if counter != key.counter {
            key.counter = counter;
            self.keys.write(&keys)?;
        }
        let credential = Some(assertion.credential.clone());
        Ok(ProvenPresence { credential, ..ProvenPresence::by("key") })
    }

    /// Returns a code with which one key can be registered, and for how many seconds. It replaces an earlier code.
    ///
    /// # Errors
    /// [`PresenceError::NoRandomNumbers`].
    pub fn begin_enrolment(&self) -> Result<(EnrolmentCode, u64), PresenceError> {
        let code = self.enrolment.lock().begin(Instant::now())?;
        Ok((code, enrolment::LIFETIME.as_secs()))
    }

    /// Registers a key. The code is used up by this, and by too many wrong ones. `record` writes the record of it, before the
    /// key is stored.
    ///
    /// # Errors
    /// [`PresenceError`]: the code or the key is not accepted, or the key cannot be stored.
    pub fn enrol(
        &self,
        registration: &KeyRegistration,
        record: impl FnOnce(&str) -> Result<(), PresenceError>,
    ) -> Result<KeyListing, PresenceError> {
        let challenge = self.enrolment.lock().take(&registration.code, Instant::now())?;
        let client_json = decode(&registration.client_data)?;
        let client = ClientData::parse(&client_json)?;
        if client.challenge()? != challenge {
            return Err(PresenceError::UnknownChallenge);
        }
        client.verify(Ceremony::Create, |_| true)?;
        let authenticator = decode(&registration.authenticator_data)?;
        let data = AuthenticatorData::parse(&authenticator)?;
        data.verify()?;
        let NewCredential { aaguid, id } = data.new_credential()?;
        if BASE64URL_NOPAD.encode(id) != registration.credential {
            return Err(PresenceError::Malformed);
        }
        let algorithm = KeyAlgorithm::try_from(registration.algorithm)?;
        algorithm.accept(&decode(&registration.public_key)?)?;
        let key = StoredKey {
            credential: registration.credential.clone(),
            public_key: registration.public_key.clone(),
            algorithm,
            aaguid: data_encoding::HEXLOWER.encode(aaguid),
            counter: data.counter(),
            enrolled: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        };
        let listing = key.listing();
        self.keys.add(key, || record(&listing.credential))?;
        Ok(listing)
    }

    /// Returns the registered keys.
    ///
    /// # Errors
    /// [`PresenceError::Storage`].
    pub fn list(&self) -> Result<Vec<KeyListing>, PresenceError> {
        Ok(self.keys.read()?.iter().map(StoredKey::listing).collect())
    }

    /// Removes a registered key. `record` writes the record of it before.
    ///
    /// # Errors
    /// [`PresenceError::UnknownKey`] or [`PresenceError::Storage`].
    pub fn remove(
        &self,
        credential: &str,
        record: impl FnOnce() -> Result<(), PresenceError>,
    ) -> Result<(), PresenceError> {
        let mut keys = self.keys.read()?;
        let before = keys.len();
        keys.retain(|key| key.credential != credential);
        if keys.len() == before {
            return Err(PresenceError::UnknownKey);
        }
        record()?;
        self.keys.write(&keys)
    }
}

/// Returns the level that a rule of the policy requires.
pub fn level_of_rule(required: RulePresence) -> Presence {
    match required {
        RulePresence::Password => Presence::Password,
        RulePresence::Key => Presence::Key,
    }
}

/// Whether another account than that of this process and root answers: a person whom the engine of the system serves.
fn is_other_account(by: Option<LocalUser>) -> bool {
    by.is_some_and(|by| by.uid != 0 && by.uid != geteuid().as_raw())
}

fn is_root(by: Option<LocalUser>) -> bool {
    by.is_some_and(|by| by.uid == 0)
}

/// Decodes a part of a message of a browser.
fn decode(part: &str) -> Result<Vec<u8>, PresenceError> {
    if part.len() > PART_CHARS_MAX {
        return Err(PresenceError::Malformed);
    }
    BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| PresenceError::Malformed)
}

fn random<const N: usize>() -> Result<[u8; N], PresenceError> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| PresenceError::NoRandomNumbers)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
