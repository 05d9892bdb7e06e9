//! The review of an upstream server's changed tools that a user reads before accepting them, with a digest of the
//! reviewed tools.

use lockhouse_catalog::{Catalogue, Tool, ToolChange, tools_digest};
use lockhouse_policies::escaped;
use lockhouse_protocol::{ServerName, ToolName};

use super::{Pins, PinsError, Record};

/// The tools of an upstream server that no user has accepted, with what has changed in them.
#[derive(Debug)]
pub struct ToolReview {
    pub changes: Vec<ChangedTool>,
    /// Names of pinned tools that the server no longer offers, or that the configuration excludes.
    pub removed: Vec<String>,
    /// Why the pins (the tool definitions that a user has accepted) cannot be read, in which case all tools count
    /// as changed; `None` if they can be read.
    pub unreadable: Option<PinsError>,
    /// Digest of the definitions of all tools that would be pinned if the user accepted, changed or not: `sha256:` and
    /// hexadecimal digits.
    pub digest: String,
}

/// A tool whose definition differs from its pin (the definition that a user has accepted), or that has no
/// pin.
#[derive(Debug)]
pub struct ChangedTool {
    pub tool: ToolName,
    pub kind: ToolChange,
    /// The time when the tool was pinned (accepted), in RFC 3339, and the pinned definition as indented JSON; `None` if
    /// the tool has no pin.
    pub before: Option<(String, String)>,
    /// The tool's current definition as indented JSON.
    pub after: String,
}

impl Pins {
    /// Compares the current tools with their pins (the definitions that a user has accepted), for a user's
    /// review. Compares the tools in `only`, or all tools if `only` is empty. Changes no pin.
    pub fn review(&self, server: &ServerName, catalogue: &Catalogue, only: &[ToolName]) -> ToolReview {
        let is_chosen = |name: &str| only.is_empty() || only.iter().any(|chosen| chosen.as_str() == name);
        let chosen = || catalogue.tools.iter().filter(|tool| is_chosen(tool.name.as_str()));
        let (record, unreadable) = match self.load() {
            Ok(record) => (record.unwrap_or_default(), None),
            Err(error) => (Record::default(), Some(error)),
        };
        let change = |tool: &Tool| {
            let kind = record.change(tool)?;
            let pin = record.tools.get(tool.name.as_str());
            Some(ChangedTool {
                tool: tool.name.clone(),
                kind: if unreadable.is_some() { ToolChange::NotComparable } else { kind },
                before: pin.map(|pin| (pin.since.clone(), indented(pin.definition.get()))),
                after: indented(tool.definition()),
            })
        };
        let is_offered = |name: &str| catalogue.tools.iter().any(|tool| tool.name.as_str() == name);
        let removed = record.tools.keys().filter(|name| is_chosen(name) && !is_offered(name));
        ToolReview {
            changes: chosen().filter_map(change).collect(),
            removed: removed.cloned().collect(),
            digest: format!("sha256:{}", tools_digest(server, only.is_empty(), chosen())),
            unreadable,
        }
    }
}

/// Returns a tool's definition as indented JSON, with invisible characters escaped.
fn indented(definition: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(definition).unwrap_or_default();
    let lines = format!("{value:#}");
    // Only strings can contain such characters, and JSON permits these escapes.
    lines.split('\n').map(|line| escaped(line) + "\n").collect()
}
