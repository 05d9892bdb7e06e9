//! What differs between two policies, by what they mean rather than by how they are written.

use crate::policy::Policy;
use crate::source::Place;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The table, as it is written: `servers.github`, `clients.cursor.servers.github` or `limits`.
    pub table: String,
    /// What of it: `tool "list_*"`, `deny "delete_*"`, `rate` and so on.
    pub subject: String,
    /// What the old policy says; `None`: nothing.
    pub old: Option<Said>,
    /// What the new policy says; `None`: nothing.
    pub new: Option<Said>,
}

/// What a policy says about something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Such as `allow`, or `60/min`.
    pub what: String,
    /// Where it stands.
    pub place: Place,
}

/// The differences, in the order of tables and subjects. Order, comments and spelling do not count.
#[must_use]
pub fn diff(_old: &Policy, _new: &Policy) -> Vec<Change> {
    Vec::new()
}
