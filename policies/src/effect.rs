//! What a line of a policy does with a call.

use std::fmt;

/// From the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It may be made.
    Allow,
    /// A person decides.
    Ask,
    /// It must not be made.
    Deny,
}

impl Effect {
    pub(crate) const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// As it is written in a policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// What it makes of a call, after "is".
    #[must_use]
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Allow => "allowed",
            Self::Ask => "left to a person",
            Self::Deny => "denied",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
