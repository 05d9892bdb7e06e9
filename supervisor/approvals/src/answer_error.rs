//! Why an answer to an approval question is rejected.

use crate::presence::PresenceError;

/// Maximum length of the reason for which one person approves alone what requires more, in characters.
pub(super) const REASON_CHARS_MAX: usize = 500;

/// Why the supervisor rejects an answer to an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("it was answered already, and the first answer counts")]
    Answered,
    #[error("this question is closed: it timed out, or its execution has ended")]
    Closed,
    #[error("there is no question with this number")]
    Unknown,
    #[error("the digest does not match this question: read the question again")]
    OtherDigest,
    #[error("this scope is not offered for this question")]
    Scope,
    #[error("this connection only observes")]
    Observer,
    #[error("the roles of this person do not cover these calls")]
    Role,
    #[error("these calls are made for this person, and somebody else must approve them")]
    Requester,
    #[error("this person has approved them already, and somebody else must approve them too")]
    ApprovedBefore,
    #[error("no role of this person permits to approve these calls alone (break_glass)")]
    BreakGlass,
    #[error("the reason must have 1 to {REASON_CHARS_MAX} characters")]
    Reason,
    #[error(transparent)]
    Presence(#[from] PresenceError),
}
