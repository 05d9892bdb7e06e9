//! What the approval of a call requires, as a policy rule says: who approves, how many of them, within which time, and with
//! which proof.

use std::cmp::Reverse;
use std::fmt;

use crate::rule_presence::RulePresence;

/// The maximum number of people that the approval of one call can require.
pub const APPROVERS_MAX: u32 = 5;

/// What the approval of a call requires. The default is one answer of any approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApprovalRequirement {
    /// What each answer must prove beyond the answer itself.
    pub presence: Option<RulePresence>,
    /// The number of different people who must approve, from 1 to [`APPROVERS_MAX`].
    pub approvers: u32,
    /// Whether the person for whom the call is made does not count as an approver.
    pub not_requester: bool,
    /// The time in seconds after which nobody can approve any more; `None` if only the configuration limits it.
    pub expires_seconds: Option<u32>,
}

impl Default for ApprovalRequirement {
    fn default() -> Self {
        Self { presence: None, approvers: 1, not_requester: false, expires_seconds: None }
    }
}

impl ApprovalRequirement {
    /// Whether it requires more than the answer of any approver.
    #[must_use]
    pub fn is_special(self) -> bool {
        self != Self::default()
    }

    /// Whether the answer of a person who is no operator, such as the user of the AI client, is not enough.
    #[must_use]
    pub fn needs_operators(self) -> bool {
        self.presence.is_some() || self.approvers > 1 || self.not_requester
    }

    /// Returns what satisfies both requirements.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            presence: self.presence.max(other.presence),
            approvers: self.approvers.max(other.approvers),
            not_requester: self.not_requester || other.not_requester,
            expires_seconds: [self.expires_seconds, other.expires_seconds].into_iter().flatten().min(),
        }
    }

    /// Returns a value for comparison: of two requirements, the stricter one is greater.
    pub(crate) fn strictness(self) -> (Option<RulePresence>, u32, bool, Reverse<u32>) {
        let expires = Reverse(self.expires_seconds.unwrap_or(u32::MAX));
        (self.presence, self.approvers, self.not_requester, expires)
    }
}

/// Writes the requirement as a list, such as `with a key, by 2 people`. It is empty for the default.
impl fmt::Display for ApprovalRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { presence, approvers, not_requester, expires_seconds } = *self;
        let parts = [
            presence.map(|presence| format!("with a {}", presence.as_str())),
            (approvers > 1).then(|| format!("by {approvers} people")),
            not_requester.then(|| "not by the requester".to_owned()),
            expires_seconds.map(|seconds| format!("within {seconds} s")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
