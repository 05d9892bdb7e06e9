//! What an approval must prove, as a policy rule requires it.

/// What the approval of a call must prove beyond the answer of an approver. The variants are in order of increasing
/// strength; a stronger proof satisfies a weaker requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RulePresence {
    /// A person has given their password.
    Password,
    /// A person has touched a registered key, which has verified them.
    Key,
}

impl RulePresence {
    pub(crate) const ALL: [Self; 2] = [Self::Password, Self::Key];

    /// Returns the requirement as policies write it: `password` or `key`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Key => "key",
        }
    }
}
