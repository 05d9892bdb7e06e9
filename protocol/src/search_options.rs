//! The options of a search for tools or skills.
//!
//! The numbers are in this crate because all parts of a search depend on it: the gate, which answers, and programs,
//! AI clients and the command line, which ask.

use serde::{Deserialize, Serialize};

/// The number of results of a search that sets no limit.
pub const SEARCH_LIMIT_DEFAULT: u32 = 10;
/// The largest number of results of one search.
pub const SEARCH_LIMIT_MAX: u32 = 50;

/// The amount of detail that a search returns about each tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchDetail {
    /// Server, name and summary.
    Names,
    /// Also the signature by which code calls the tool.
    #[default]
    Signatures,
    /// Also the full definition from the server.
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
