//! The options of a search for tools or skills.
//!
//! The numbers are in this crate because all parts of a search depend on it: the gate, which answers, and programs,
//! AI clients and the command line, which ask.

use serde::{Deserialize, Serialize};

/// The maximum number of results of a search that sets no limit.
pub const SEARCH_LIMIT_DEFAULT: u32 = 6;
/// The largest limit that a search can set.
pub const SEARCH_LIMIT_MAX: u32 = 50;

/// The amount of detail that a search returns about each tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchDetail {
    /// Each tool's server, name and summary.
    Names,
    /// The names, and the signature by which code calls each tool.
    #[default]
    Signatures,
    /// The signatures, and each tool's full definition from its server.
    Full,
}

impl SearchDetail {
    /// Parses `names`, `signatures` or `full`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "names" => Some(Self::Names),
            "signatures" => Some(Self::Signatures),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}
