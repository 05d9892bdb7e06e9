//! The one-time code with which a key can be registered.

use std::time::{Duration, Instant};

use data_encoding::BASE32_NOPAD;
use lockhouse_messages::EnrolmentCode;
use sha2::{Digest, Sha256};

use super::{PresenceError, random};

/// How long a code for the registration of a key is valid.
/// Bound: approvals and questions.
pub(super) const LIFETIME: Duration = Duration::from_secs(300);
/// Maximum number of wrong codes before the right one is not valid any more.
/// Bound: approvals and questions.
const WRONG_CODES_MAX: u32 = 5;
/// The first part of what is hashed for a challenge, so that no hash for another purpose is one.
const LABEL: &str = "lockhouse enrolment 1";

/// The code that is valid now, if there is one.
#[derive(Debug, Default)]
pub(super) struct Enrolment(Option<OpenEnrolment>);

#[derive(Debug)]
struct OpenEnrolment {
    /// What the key must sign: the hash of the code.
    challenge: [u8; 32],
    expires: Instant,
    wrong_codes: u32,
}

impl Enrolment {
    pub(super) fn begin(&mut self, now: Instant) -> Result<EnrolmentCode, PresenceError> {
        // 80 bits, which are 16 characters.
        let code = BASE32_NOPAD.encode(&random::<10>()?);
        let (challenge, expires) = (challenge_of(&code), now + LIFETIME);
        self.0 = Some(OpenEnrolment { challenge, expires, wrong_codes: 0 });
        Ok(EnrolmentCode(code))
    }

    /// Uses the code up, and returns what the key must have signed.
    pub(super) fn take(&mut self, code: &EnrolmentCode, now: Instant) -> Result<[u8; 32], PresenceError> {
        let open = self.0.as_mut().filter(|open| now < open.expires).ok_or(PresenceError::WrongCode)?;
        let challenge = challenge_of(&code.0);
        if challenge == open.challenge {
            self.0 = None;
            return Ok(challenge);
        }
        open.wrong_codes += 1;
        if open.wrong_codes >= WRONG_CODES_MAX {
            self.0 = None;
        }
        Err(PresenceError::WrongCode)
    }
}

fn challenge_of(code: &str) -> [u8; 32] {
    Sha256::new().chain_update(LABEL).chain_update([0]).chain_update(code).finalize().into()
}
