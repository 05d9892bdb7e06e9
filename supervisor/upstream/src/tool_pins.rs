//! Pins the definitions of an upstream server's tools that a user has accepted. A server that was harmless when it was
//! permitted may later change its tools' descriptions, and so influence the model.
//!
//! The tools that a server offers at first are pinned automatically. After that, tools are pinned only when a user
//! accepts them. A tool counts as changed if its definition differs from its pin, if it has no pin, or if its pin
//! cannot be read.

mod review;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_protocol::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use lockhouse_base::files::{self, FileVersion};
use lockhouse_catalog::{Catalogue, DEFINITIONS_BYTES_MAX, Tool, ToolChange};

pub use review::{ChangedTool, ToolReview};

const VERSION: u32 = 1;
/// Maximum number of pinned tools of one server. It is higher than the number of tools that a server can offer, so all
/// tools of a server can be accepted.
/// Bound: tools and searches.
const PINS_MAX: usize = 10_000;
const FILE_BYTES_MAX: usize = 4 * DEFINITIONS_BYTES_MAX;

/// The file with the pinned tool definitions of one upstream server. If its path is `None`, nothing can be pinned.
#[derive(Clone, Debug)]
pub struct Pins {
    path: Option<PathBuf>,
}

#[derive(Deserialize, Serialize)]
struct Record {
    version: u32,
    tools: BTreeMap<String, Pin>,
}

#[derive(Deserialize, Serialize)]
struct Pin {
    fingerprint: String,
    /// When the tool was pinned, in RFC 3339.
    since: String,
    definition: Box<RawValue>,
}

/// Why a server's tools cannot be compared with their pins (the definitions that a user has accepted), or
/// cannot be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    #[error("there is no place to keep the pinned definitions: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoStateDirectory,
    #[error("the pinned definitions in {path} cannot be {what}: {source}")]
    File { path: PathBuf, what: &'static str, source: std::io::Error },
    #[error(
        "{path} would hold {tools} tools in {bytes} bytes, and the limits are {PINS_MAX} tools and {FILE_BYTES_MAX} bytes; \
         accept all tools of the server new once, which removes the pins of tools that it no longer offers"
    )]
    Full { path: PathBuf, tools: usize, bytes: usize },
}

impl Pins {
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path }
    }

    /// Marks the tools of `catalogue` whose definitions no user has accepted. If the server has no pins yet, pins all
    /// of its tools.
    ///
    /// # Errors
    ///
    /// If the pins cannot be read, or the first pins cannot be written. All tools are marked then.
    pub fn compare(&self, catalogue: &mut Catalogue) -> Result<(), PinsError> {
        let record = self.accepted(catalogue);
        for tool in &mut catalogue.tools {
            tool.change = match &record {
                Ok(record) => record.change(tool),
                Err(_) => Some(ToolChange::NotComparable),
            };
        }
        record.map(drop)
    }

    /// Returns the version of the pins file, which changes whenever a process writes the file; `None` if there is no
    /// file.
    pub fn version(&self) -> Option<FileVersion> {
        FileVersion::following_links(self.path.as_ref()?)
    }

    /// Accepts tools by pinning their current definitions: the tools in `only`, or all tools if `only` is empty. If
    /// `only` is empty, also removes the pins of tools that the server no longer offers. Returns the number of tools
    /// whose pins were added or changed.
    ///
    /// # Errors
    ///
    /// If the pins cannot be written, or `only` is not empty and the pins cannot be read. With an empty `only`, an
    /// unreadable file is replaced.
    pub fn accept(&self, catalogue: &Catalogue, only: &[ToolName]) -> Result<usize, PinsError> {
        let mut record = match self.load() {
            Ok(record) => record.unwrap_or_default(),
            Err(PinsError::File { .. }) if only.is_empty() => Record::default(),
            Err(error) => return Err(error),
        };
        if only.is_empty() {
            record.tools.retain(|name, _| catalogue.tools.iter().any(|tool| tool.name.as_str() == name));
        }
        let chosen = catalogue.tools.iter().filter(|tool| only.is_empty() || only.contains(&tool.name));
        let changed: Vec<&Tool> = chosen.filter(|tool| record.change(tool).is_some()).collect();
        changed.iter().for_each(|tool| record.pin(tool));
        let (path, content) = self.serialized(&record)?;
        files::replace_durably(path, &content).map_err(|source| self.failed("written", source))?;
        Ok(changed.len())
    }

    /// Loads the pins of the server (the tool definitions that a user has accepted). If there are none yet, pins
    /// all tools of `catalogue` and returns these pins.
    fn accepted(&self, catalogue: &Catalogue) -> Result<Record, PinsError> {
        if let Some(record) = self.load()? {
            return Ok(record);
        }
        let mut record = Record::default();
        if catalogue.tools.is_empty() {
            return Ok(record);
        }
        catalogue.tools.iter().for_each(|tool| record.pin(tool));
        let (path, content) = self.serialized(&record)?;
        files::create_durably(path, &content).map_err(|source| self.failed("written", source))?;
        // Another process may have pinned tools at the same time; the file decides.
        Ok(self.load()?.unwrap_or_default())
    }

    fn path(&self) -> Result<&Path, PinsError> {
        self.path.as_deref().ok_or(PinsError::NoStateDirectory)
    }

    fn failed(&self, what: &'static str, source: std::io::Error) -> PinsError {
        PinsError::File { path: self.path.clone().unwrap_or_default(), what, source }
    }

    /// Loads the file with the server's pins (the tool definitions that a user has accepted); `None` if the
    /// server has no pins yet.
    fn load(&self) -> Result<Option<Record>, PinsError> {
        let failed = |source| self.failed("read", source);
        let Some(text) = files::read_bounded(self.path()?, FILE_BYTES_MAX as u64).map_err(failed)? else {
            return Ok(None);
        };
        let record: Record = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        if record.version == VERSION {
            return Ok(Some(record));
        }
        Err(failed(std::io::Error::other("they are of another version of Lockhouse")))
    }

    /// Returns the path of the pins file, and its new content as JSON. Returns an error if the pins exceed the
    /// limits within which they can be loaded again.
    fn serialized(&self, record: &Record) -> Result<(&Path, Vec<u8>), PinsError> {
        let path = self.path()?;
        let content = serde_json::to_vec(record).map_err(|error| self.failed("written", error.into()))?;
        let (tools, bytes) = (record.tools.len(), content.len());
        if tools > PINS_MAX || bytes > FILE_BYTES_MAX {
            return Err(PinsError::Full { path: path.to_owned(), tools, bytes });
        }
        Ok((path, content))
    }
}

impl Default for Record {
    fn default() -> Self {
        Self { version: VERSION, tools: BTreeMap::new() }
    }
}

impl Record {
    fn change(&self, tool: &Tool) -> Option<ToolChange> {
        match self.tools.get(tool.name.as_str()) {
            None => Some(ToolChange::New),
            Some(pin) => (pin.fingerprint != tool.fingerprint).then_some(ToolChange::Definition),
        }
    }

    /// Pins the current definition of a tool, so that it counts as accepted. A tool whose definition is not valid
    /// JSON gets no pin and counts as new.
    fn pin(&mut self, tool: &Tool) {
        let Ok(definition) = RawValue::from_string(tool.definition().to_owned()) else { return };
        let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let pin = Pin { fingerprint: tool.fingerprint.clone(), since, definition };
        self.tools.insert(tool.name.to_string(), pin);
    }
}
