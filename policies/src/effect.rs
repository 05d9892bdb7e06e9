//! The effects that a policy can have on a call: allow, ask, deny.

use std::fmt;

/// The effect of a policy statement on the calls that it applies to. The variants are in order of increasing
/// strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The call may be sent without approval.
    Allow,
    /// The call may be sent only after a user approves it.
    Ask,
    /// The call must not be sent.
    Deny,
}

impl Effect {
    pub(crate) const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the effect as policies write it: `allow`, `ask` or `deny`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns the effect as the end of a sentence about a call: "is allowed", "requires approval" or "is denied".
    #[must_use]
    pub fn predicate(self) -> &'static str {
        match self {
            Self::Allow => "is allowed",
            Self::Ask => "requires approval",
            Self::Deny => "is denied",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
