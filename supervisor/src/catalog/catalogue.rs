//! What one server offers.

use std::sync::OnceLock;

use lockhouse_protocol::ToolName;

use super::Tool;

/// The tools of one server, as they were when it was asked.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) tools: Vec<Tool>,
    /// What a client that loads all definitions would get of them.
    pub(crate) definitions_bytes: usize,
    /// The answer to a worker's `ListTools`, which only depends on the policy: made once.
    pub(crate) briefs: OnceLock<Vec<u8>>,
}

impl Catalogue {
    pub(crate) fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == *name)
    }
}
