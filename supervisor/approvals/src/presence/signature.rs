//! The signatures of keys.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::PresenceError;

/// The algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeyAlgorithm {
    Es256,
    EdDsa,
    Rs256,
}

/// The numbers are those of COSE: <https://www.iana.org/assignments/cose>.
impl TryFrom<i32> for KeyAlgorithm {
    type Error = PresenceError;

    fn try_from(number: i32) -> Result<Self, PresenceError> {
        match number {
            -7 => Ok(Self::Es256),
            -8 => Ok(Self::EdDsa),
            -257 => Ok(Self::Rs256),
            _ => Err(PresenceError::Algorithm),
        }
    }
}

impl KeyAlgorithm {
    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Es256 => &ECDSA_P256_SHA256_ASN1,
            Self::EdDsa => &ED25519,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        }
    }

    fn parse(self, public_key: &[u8]) -> Result<ParsedPublicKey, PresenceError> {
        ParsedPublicKey::new(self.verification(), public_key).map_err(|_| PresenceError::Malformed)
    }

    /// Checks that a public key is one of this algorithm.
    pub(super) fn accept(self, public_key: &[u8]) -> Result<(), PresenceError> {
        self.parse(public_key).map(drop)
    }

    /// Verifies the signature of a key over the authenticator's data and the hash of the browser's JSON.
    pub(super) fn verify(
        self,
        public_key: &[u8],
        authenticator_data: &[u8],
        client_data: &[u8],
        signature: &[u8],
    ) -> Result<(), PresenceError> {
        let signed = [authenticator_data, Sha256::digest(client_data).as_slice()].concat();
        let verified = self.parse(public_key)?.verify_sig(&signed, signature);
        verified.map_err(|_| PresenceError::Signature)
    }
}
