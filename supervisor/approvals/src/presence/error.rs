//! Why a proof of presence, a challenge or a registration is refused.

/// Why a proof, a challenge or a registration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresenceError {
    #[error(
        "this approval needs a password: give it in a terminal, with `lockhouse approvals` for calls, or with \
         `lockhouse policy accept` or `server accept`"
    )]
    PasswordRequired,
    #[error("this approval needs a registered key: approve it on the page that `lockhouse page` opens")]
    KeyRequired,
    #[error("only a process of root can state that a person gave a password")]
    NotRoot,
    #[error(
        "a password of root does not prove that a person is there: root answers with `lockhouse approvals`"
    )]
    PasswordOfRoot,
    #[error("what the key has signed was used already, has expired, or was never requested: approve again")]
    UnknownChallenge,
    #[error(
        "the key has signed for something else: another question, another scope, or another policy or server"
    )]
    OtherSubject,
    #[error(
        "only root approves this on this host, because neither its requirements nor the rule of the policy set a `presence`"
    )]
    OnlyRootApproves,
    #[error("only root accepts this on this host, because its requirements set no `presence`")]
    OnlyRoot,
    #[error("the message of the key is malformed")]
    Malformed,
    #[error("the key was asked for something else than this")]
    OtherCeremony,
    #[error("another web page has asked the key")]
    OtherOrigin,
    #[error("the key has signed for another name than localhost")]
    OtherRelyingParty,
    #[error("the key reports that nobody has touched it")]
    NotTouched,
    #[error("the key has not verified its user: set a PIN or a fingerprint on it")]
    NotVerified,
    #[error(
        "this key is not registered here: an administrator registers it with `lockhouse approvals enroll`"
    )]
    UnknownKey,
    #[error("the signature of the key is not valid")]
    Signature,
    #[error(
        "the key has counted backwards, so there may be a copy of it: remove it, and register another one"
    )]
    Counter,
    #[error("no key is registered here: an administrator registers one with `lockhouse approvals enroll`")]
    NoKeys,
    #[error(
        "the code is wrong or has expired: an administrator gets another one with `lockhouse approvals enroll`"
    )]
    WrongCode,
    #[error("this key is registered already")]
    KnownKey,
    #[error("too many keys are registered: remove one first")]
    TooManyKeys,
    #[error("keys of this kind are not supported: ES256, EdDSA and RS256 are")]
    Algorithm,
    #[error("the registered keys cannot be read or written; the log of Lockhouse has the reason")]
    Storage,
    #[error("the audit log cannot record it, so nothing was changed; the log of Lockhouse has the reason")]
    Unrecorded,
    #[error("no random numbers are available")]
    NoRandomNumbers,
}
