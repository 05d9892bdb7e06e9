//! The key of what an AI client owns.

use serde::{Deserialize, Serialize};

/// Identifies whom sessions, stored results and executions belong to: an AI client, or the user at the command line. A
/// client can access only what belongs to its own owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner(u128);

impl Owner {
    /// The owner for the user at the command line.
    pub const LOCAL: Self = Self(0);
    /// The bit that is set in every owner created from a name, and in no other owner.
    const NAMED: u128 = 1 << 127;

    /// Returns the owner for the connection with this number, which is at least 1 and belongs to no other connection of the
    /// engine's process.
    pub fn of_connection(number: u64) -> Self {
        Self(u128::from(number))
    }

    /// Returns the owner for the authenticated name with this digest.
    pub fn of_digest(digest: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(digest) | Self::NAMED)
    }

    /// Returns the owner for what a person keeps beyond one connection, such as a login: connections without an authenticated
    /// name are of the user who runs Lockhouse.
    #[must_use]
    pub fn user(self) -> Self {
        if self.is_limited() { self } else { Self::LOCAL }
    }

    /// Returns the number of the connection that the owner stands for.
    pub fn number(self) -> u128 {
        self.0
    }

    /// Returns the owner as 32 hexadecimal digits, for the name of the directory with the skills of an AI client.
    pub fn to_hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Whether this is the owner of one connection, so that what it owns ends with the connection.
    pub fn is_connection(self) -> bool {
        self.0 & Self::NAMED == 0 && self != Self::LOCAL
    }

    /// Whether the limits for each AI client (rate limits, quotas, CPU credit) apply to this owner. They apply to
    /// clients that share the engine with others, but not to the client or user that started it.
    pub fn is_limited(self) -> bool {
        self.0 & Self::NAMED != 0
    }
}
