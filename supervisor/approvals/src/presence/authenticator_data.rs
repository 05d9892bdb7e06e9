//! What an authenticator has signed, beside the hash of the browser's JSON: <https://www.w3.org/TR/webauthn-2/#sctn-authenticator-data>.

use sha2::{Digest, Sha256};

use super::PresenceError;

/// The name for which keys sign. It has no port, so that the origin must be verified, too.
const RELYING_PARTY: &str = "localhost";
const USER_PRESENT: u8 = 1 << 0;
const USER_VERIFIED: u8 = 1 << 2;
const HAS_CREDENTIAL: u8 = 1 << 6;

/// The data of an authenticator, without its extensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuthenticatorData<'a> {
    relying_party: &'a [u8; 32],
    flags: u8,
    counter: u32,
    rest: &'a [u8],
}

/// The credential in the data of a registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewCredential<'a> {
    pub(super) aaguid: &'a [u8; 16],
    pub(super) id: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, PresenceError> {
        let (relying_party, rest) = bytes.split_first_chunk().ok_or(PresenceError::Malformed)?;
        let (&[flags], rest) = rest.split_first_chunk().ok_or(PresenceError::Malformed)?;
        let (counter, rest) = rest.split_first_chunk().ok_or(PresenceError::Malformed)?;
        Ok(Self { relying_party, flags, counter: u32::from_be_bytes(*counter), rest })
    }

    /// Verifies that the key has signed for this host, after it was touched and has verified its user.
    pub(super) fn verify(&self) -> Result<(), PresenceError> {
        if self.relying_party[..] != Sha256::digest(RELYING_PARTY)[..] {
            return Err(PresenceError::OtherRelyingParty);
        }
        if self.flags & USER_PRESENT == 0 {
            return Err(PresenceError::NotTouched);
        }
        if self.flags & USER_VERIFIED == 0 {
            return Err(PresenceError::NotVerified);
        }
        Ok(())
    }

    pub(super) fn counter(&self) -> u32 {
        self.counter
    }

    /// Returns the new credential of a registration.
    pub(super) fn new_credential(&self) -> Result<NewCredential<'a>, PresenceError> {
        if self.flags & HAS_CREDENTIAL == 0 {
            return Err(PresenceError::Malformed);
        }
        let (aaguid, rest) = self.rest.split_first_chunk().ok_or(PresenceError::Malformed)?;
        let (length, rest) = rest.split_first_chunk().ok_or(PresenceError::Malformed)?;
        let id = rest.get(..usize::from(u16::from_be_bytes(*length))).ok_or(PresenceError::Malformed)?;
        Ok(NewCredential { aaguid, id })
    }
}
