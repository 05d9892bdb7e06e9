//! What a person reads before they accept tools, and the digest that says which tools they have read about.

use lockhouse_catalog::{Catalogue, Tool, ToolChange, digest};
use lockhouse_policies::escaped;
use lockhouse_protocol::{ServerName, ToolName};

use super::{Pins, PinsError, Record};

/// The tools of a server that do not count as accepted.
#[derive(Debug)]
pub struct Review {
    pub changes: Vec<Change>,
    /// Names of pinned tools that the server no longer offers, or the configuration no longer admits.
    pub gone: Vec<String>,
    /// Why there is nothing to compare with; every tool is a change then.
    pub unreadable: Option<PinsError>,
    /// Of all tools that accepting would pin, changed or not: `sha256:` and hexadecimal digits.
    pub digest: String,
}

/// One tool that is not as it was accepted.
#[derive(Debug)]
pub struct Change {
    pub tool: ToolName,
    pub kind: ToolChange,
    /// When the definition was pinned, and that definition as indented JSON, if there is one.
    pub before: Option<(String, String)>,
    /// The definition as it is now, as indented JSON.
    pub after: String,
}

impl Pins {
    /// Compares tools with their pins, and changes nothing: those of `only`, or all.
    pub fn review(&self, server: &ServerName, catalogue: &Catalogue, only: &[ToolName]) -> Review {
        let is_chosen = |name: &str| only.is_empty() || only.iter().any(|chosen| chosen.as_str() == name);
        let chosen = || catalogue.tools.iter().filter(|tool| is_chosen(tool.name.as_str()));
        let (record, unreadable) = match self.load() {
            Ok(record) => (record.unwrap_or_default(), None),
            Err(error) => (Record::default(), Some(error)),
        };
        let change = |tool: &Tool| {
            let kind = record.change(tool)?;
            let pin = record.tools.get(tool.name.as_str());
            Some(Change {
                tool: tool.name.clone(),
                kind: if unreadable.is_some() { ToolChange::NotComparable } else { kind },
                before: pin.map(|pin| (pin.since.clone(), indented(pin.definition.get()))),
                after: indented(tool.definition()),
            })
        };
        let is_offered = |name: &str| catalogue.tools.iter().any(|tool| tool.name.as_str() == name);
        let gone = record.tools.keys().filter(|name| is_chosen(name) && !is_offered(name));
        Review {
            changes: chosen().filter_map(change).collect(),
            gone: gone.cloned().collect(),
            digest: format!("sha256:{}", digest(server, only.is_empty(), chosen())),
            unreadable,
        }
    }
}

/// JSON that holds the same values and no character that cannot be seen.
fn indented(definition: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(definition).unwrap_or_default();
    let lines = format!("{value:#}");
    // Only strings can hold such characters, and JSON may write them so.
    lines.split('\n').map(|line| escaped(line) + "\n").collect()
}
