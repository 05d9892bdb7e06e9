//! Proofs that a person is there who approves something, and the keys of people. Binary data is in base64url without
//! padding, as browsers' programs for WebAuthn have it.

use serde::{Deserialize, Serialize};

/// What an approval must prove, from the weakest to the strongest. A stronger proof satisfies a weaker requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// Whoever may answer may approve.
    #[default]
    None,
    /// A process of root approves, for example after a person gave their password to polkit or sudo.
    Password,
    /// A person has touched a registered key, which has verified them, for exactly this.
    Key,
}

impl Presence {
    pub const NAMES: [&str; 3] = ["none", "password", "key"];

    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The proof that a person is there who approves something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PresenceProof {
    /// A process of root states that this account has given its password for this. From another account it is refused.
    Password {
        method: PasswordMethod,
        uid: u32,
    },
    Key(KeyAssertion),
}

/// The program that has asked for a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PasswordMethod {
    Polkit,
    Sudo,
}

/// What a key must sign to approve one thing. It can be used once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChallenge {
    pub challenge: String,
    /// The ids of the credentials that may sign.
    pub credentials: Vec<String>,
    /// Number of seconds for which the challenge is valid.
    pub seconds: u64,
}

/// The signature of a key over a [`KeyChallenge`]: the result of `navigator.credentials.get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyAssertion {
    /// The id of the credential.
    pub credential: String,
    /// The JSON that the browser has made.
    pub client_data: String,
    pub authenticator_data: String,
    pub signature: String,
}

/// The code with which one key can be registered.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnrolmentCode(pub String);

impl std::fmt::Debug for EnrolmentCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnrolmentCode")
    }
}

/// A new key: the result of `navigator.credentials.create`, with the code of the administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRegistration {
    pub code: EnrolmentCode,
    /// The id of the credential.
    pub credential: String,
    /// The JSON that the browser has made.
    pub client_data: String,
    pub authenticator_data: String,
    /// The public key as a DER `SubjectPublicKeyInfo`.
    pub public_key: String,
    /// The COSE number of the algorithm: -7 for ES256, -8 for EdDSA, -257 for RS256.
    pub algorithm: i32,
}

/// One registered key in the list of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyListing {
    /// The id of the credential.
    pub credential: String,
    /// The model of the key as it says itself, in hexadecimal digits. Zeros if it does not say.
    pub aaguid: String,
    /// How many signatures the key has made by its own count. 0 if it does not count.
    pub counter: u32,
    /// When it was registered: UTC, as RFC 3339.
    pub enrolled: String,
}
