//! What may be asked of a search, of tools or of skills.
//!
//! The numbers are here since everything that takes part in a search knows this crate: the gate, which answers, and code of both
//! languages, AI clients and people, who ask.

use serde::{Deserialize, Serialize};

/// Results that one search gives if its limit is not said.
pub const SEARCH_LIMIT_DEFAULT: u32 = 10;
/// Results that one search gives at most.
pub const SEARCH_LIMIT_MAX: u32 = 50;

/// How much a search tells of each tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Server, name and summary.
    Names,
    /// And how it is called.
    #[default]
    Signatures,
    /// And everything that its server says of it.
    Full,
}

impl Detail {
    /// The detail of that name, as programs write it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "names" => Some(Self::Names),
            "signatures" => Some(Self::Signatures),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}
