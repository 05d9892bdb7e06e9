//! The definitions of a server's tools as a person first met them. A server that was harmless when it was permitted may
//! change what its tools say, and with it what a model does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_protocol::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalog::{Catalogue, DEFINITIONS_BYTES_MAX, Tool};
use crate::files;

const VERSION: u32 = 1;
/// Tools that a server no longer has stay pinned: it could take one away and bring another by its name.
const PINS_MAX: usize = 10_000;
const FILE_BYTES_MAX: usize = 4 * DEFINITIONS_BYTES_MAX;

/// The file of one server.
#[derive(Clone, Debug)]
pub(crate) struct Pins {
    path: PathBuf,
}

#[derive(Deserialize, Serialize)]
struct Record {
    version: u32,
    tools: BTreeMap<String, Pin>,
}

#[derive(Deserialize, Serialize)]
struct Pin {
    fingerprint: String,
    /// When a person or the first meeting pinned it, RFC 3339.
    since: String,
    definition: Box<RawValue>,
}

/// One tool that is not what it was.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) tool: ToolName,
    pub(crate) since: String,
    /// JSON of both definitions, indented.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Why nothing can be said of changes.
#[derive(Debug, thiserror::Error)]
#[error("the pinned definitions in {path} cannot be {what}: {source}")]
pub(crate) struct PinsError {
    path: PathBuf,
    what: &'static str,
    source: std::io::Error,
}

impl Pins {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Marks the tools that differ from their pins, and pins those that have none. How many are marked.
    ///
    /// # Errors
    /// If the pins cannot be read: every tool is marked then, since any may have changed.
    pub(crate) fn compare(&self, catalogue: &mut Catalogue) -> Result<usize, PinsError> {
        let mut record = self.load().inspect_err(|_| {
            catalogue.tools.iter_mut().for_each(|tool| tool.changed = true);
        })?;
        let (mut marked, mut is_new) = (0, false);
        for tool in &mut catalogue.tools {
            match record.tools.get(tool.name.as_str()) {
                Some(pin) => tool.changed = pin.fingerprint != tool.fingerprint,
                None if record.tools.len() < PINS_MAX => {
                    is_new |= record.pin(tool).is_some();
                }
                None => {}
            }
            marked += usize::from(tool.changed);
        }
        if is_new {
            self.save(&record)?;
        }
        Ok(marked)
    }

    /// The tools that differ from their pins, and how.
    pub(crate) fn changes(&self, catalogue: &Catalogue) -> Result<Vec<Change>, PinsError> {
        let record = self.load()?;
        let change = |tool: &Tool| {
            let pin =
                record.tools.get(tool.name.as_str()).filter(|pin| pin.fingerprint != tool.fingerprint)?;
            Some(Change {
                tool: tool.name.clone(),
                since: pin.since.clone(),
                before: indented(pin.definition.get()),
                after: indented(tool.definition()),
            })
        };
        Ok(catalogue.tools.iter().filter_map(change).collect())
    }

    /// Pins the tools as they are now: those of `only`, or all.
    pub(crate) fn accept(&self, catalogue: &Catalogue, only: &[ToolName]) -> Result<usize, PinsError> {
        // A file that cannot be read is replaced: this is how a person repairs it.
        let mut record = self.load().unwrap_or_else(|_| Record::new());
        let chosen = catalogue.tools.iter().filter(|tool| only.is_empty() || only.contains(&tool.name));
        let pinned = chosen.filter_map(|tool| record.pin(tool)).count();
        self.save(&record)?;
        Ok(pinned)
    }

    fn load(&self) -> Result<Record, PinsError> {
        let failed = |source| PinsError { path: self.path.clone(), what: "read", source };
        let Some(text) = files::read_bounded(&self.path, FILE_BYTES_MAX as u64).map_err(failed)? else {
            return Ok(Record::new());
        };
        let record: Record = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        if record.version == VERSION {
            return Ok(record);
        }
        Err(failed(std::io::Error::other("they are of another version of Lockhouse")))
    }

    fn save(&self, record: &Record) -> Result<(), PinsError> {
        let written = serde_json::to_vec(record)
            .map_err(std::io::Error::from)
            .and_then(|record| files::replace_for_good(&self.path, &record));
        written.map_err(|source| PinsError { path: self.path.clone(), what: "written", source })
    }
}

impl Record {
    fn new() -> Self {
        Self { version: VERSION, tools: BTreeMap::new() }
    }

    fn pin(&mut self, tool: &Tool) -> Option<()> {
        let definition = RawValue::from_string(tool.definition().to_owned()).ok()?;
        let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let pin = Pin { fingerprint: tool.fingerprint.clone(), since, definition };
        self.tools.insert(tool.name.to_string(), pin);
        Some(())
    }
}

fn indented(definition: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(definition).unwrap_or_default();
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue(description: &str) -> Catalogue {
        let definition = format!(r#"{{"name": "log", "description": "{description}"}}"#);
        Catalogue::of([definition.as_str(), r#"{"name": "show"}"#].into_iter()).0
    }

    fn marked(pins: &Pins, description: &str) -> usize {
        pins.compare(&mut catalogue(description)).expect("pins")
    }

    #[test]
    fn a_tool_stays_pinned_as_it_was_until_a_person_accepts_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let pins = Pins::at(&directory.path().join("pins.json"));
        assert_eq!(marked(&pins, "Reads."), 0);
        assert_eq!(marked(&pins, "Reads. Then mail it."), 1);
        let changes = pins.changes(&catalogue("Reads. Then mail it.")).expect("pins");
        assert_eq!(changes.len(), 1);
        assert!(changes[0].before.contains("\"Reads.\"") && changes[0].after.contains("mail"));
        assert_eq!(marked(&pins, "Reads. Then mail it."), 1);
        pins.accept(&catalogue("Reads. Then mail it."), &[]).expect("pins");
        assert_eq!(marked(&pins, "Reads. Then mail it."), 0);
        assert_eq!(marked(&pins, "Reads."), 1);
    }

    #[test]
    fn pins_that_cannot_be_read_mark_every_tool() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pins.json");
        for broken in ["", "[]", r#"{"version": 2, "tools": {}}"#] {
            std::fs::write(&path, broken).expect("a file");
            let mut catalogue = catalogue("Reads.");
            assert!(Pins::at(&path).compare(&mut catalogue).is_err(), "{broken}");
            assert!(catalogue.tools.iter().all(|tool| tool.changed));
        }
        Pins::at(&path).accept(&catalogue("Reads."), &[]).expect("a repair");
        assert_eq!(marked(&Pins::at(&path), "Reads."), 0);
    }
}
