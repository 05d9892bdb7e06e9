//! The options of a search for tools or skills.
//!
//! The limits are in this crate because both sides of a search use them: the gate, which performs searches, and
//! submitted programs, AI clients and the command line, which request them.

use serde::{Deserialize, Serialize};

/// The maximum number of results of a search whose request contains no limit.
/// Bound: tools and searches.
pub const SEARCH_LIMIT_DEFAULT: u32 = 6;
/// The largest limit, in results, that a search request may contain.
/// Bound: tools and searches.
pub const SEARCH_LIMIT_MAX: u32 = 50;

/// The amount of detail that a search returns about each tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchDetail {
    /// Each tool's server, name and summary.
    Names,
    /// The server, name and summary, and the signature by which code calls each tool.
    #[default]
    Signatures,
    /// All that [`Self::Signatures`] returns, and each tool's full definition from its upstream server.
    Full,
}

impl SearchDetail {
    /// Parses `names`, `signatures` or `full`. Returns `None` for any other text.
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
