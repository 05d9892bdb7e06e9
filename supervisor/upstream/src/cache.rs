//! What a server offered and which handshake it understood, when it was last connected. It spares the wait for servers
//! that start slowly, and makes up for those that are down.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lockhouse_base::files;
use lockhouse_catalog::{Catalogue, DEFINITIONS_BYTES_MAX};
use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::definition::ServerDefinition;
use super::places::Places;

/// The format below. A file of another version is not read.
const VERSION: u32 = 1;
/// What a record has besides the definitions.
const OVERHEAD_BYTES: usize = 64 * 1024;

/// The file of one server.
pub(super) struct Cache {
    name: ServerName,
    path: Option<PathBuf>,
    /// How long a record stands for the server itself.
    lifetime: Duration,
}

#[derive(Deserialize)]
struct Record<'a> {
    version: u32,
    /// Seconds since 1970.
    saved: u64,
    legacy: bool,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct NewRecord<'a> {
    version: u32,
    saved: u64,
    legacy: bool,
    tools: Vec<&'a RawValue>,
}

/// What the file said.
pub(super) struct Remembered {
    pub(super) catalogue: Catalogue,
    /// Whether the server understood only the older handshake.
    pub(super) legacy: bool,
    /// Whether it is too old to stand for the server, unless there is nothing better.
    pub(super) expired: bool,
}

/// The tools of a server as they were last seen, without asking it.
pub fn remembered(name: &ServerName, definition: &ServerDefinition, places: &Places) -> Option<Catalogue> {
    let cache = Cache::new(name, places.tools(name, definition), places.tools_lifetime);
    Some(cache.load()?.catalogue)
}

impl Cache {
    pub(super) fn new(name: &ServerName, path: Option<PathBuf>, lifetime: Duration) -> Self {
        Self { name: name.clone(), path, lifetime }
    }

    /// Nothing, if there is no record or it cannot be used: the server itself will tell.
    pub(super) fn load(&self) -> Option<Remembered> {
        let text = files::read_bounded(self.path.as_ref()?, (DEFINITIONS_BYTES_MAX + OVERHEAD_BYTES) as u64);
        let text =
            text.inspect_err(|error| tracing::debug!(server = %self.name, "no remembered tools: {error}"));
        let text = text.ok()??;
        let record: Record<'_> =
            serde_json::from_str(&text).ok().filter(|r: &Record<'_>| r.version == VERSION)?;
        // A clock that was set back makes a record of the future: as good as none.
        let age = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(record.saved))
            .ok()?;
        let catalogue = Catalogue::of(record.tools.iter().map(|tool| tool.get())).0;
        Some(Remembered { catalogue, legacy: record.legacy, expired: age >= self.lifetime })
    }

    /// A record that cannot be written is told and costs nothing but the time that it would have spared.
    pub(super) fn save(&self, catalogue: &Catalogue, legacy: bool) {
        let Some(path) = &self.path else { return };
        let saved = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let definitions = catalogue.tools.iter().map(|tool| serde_json::from_str(tool.definition()));
        let Ok(tools) = definitions.collect() else { return };
        let written = serde_json::to_vec(&NewRecord { version: VERSION, saved, legacy, tools })
            .map_err(std::io::Error::from)
            .and_then(|record| files::replace(path, &record));
        if let Err(error) = written {
            tracing::warn!(server = %self.name, "its tools cannot be remembered in {}: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded_and_what_is_broken_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = ServerName::new("x").expect("a name");
        let path = directory.path().join("x.json");
        let cache = |lifetime| Cache::new(&name, Some(path.clone()), lifetime);
        let day = Duration::from_secs(86_400);
        assert!(cache(day).load().is_none());
        let definition = r#"{"name":"log","vendorExtra":[1,2]}"#;
        cache(day).save(&Catalogue::of([definition].into_iter()).0, true);
        let loaded = cache(day).load().expect("a record");
        assert!(loaded.legacy && !loaded.expired);
        assert_eq!(loaded.catalogue.tools[0].definition(), definition);
        assert!(cache(Duration::ZERO).load().is_some_and(|loaded| loaded.expired));
        let future = std::fs::read_to_string(&path).expect("text").replace("\"saved\":1", "\"saved\":9");
        for broken in ["", "{}", "[", r#"{"version":2,"saved":0,"legacy":true,"tools":[]}"#, &future] {
            std::fs::write(&path, broken).expect("a file");
            assert!(cache(day).load().is_none(), "{broken}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_failure() {
        let name = ServerName::new("x").expect("a name");
        let cache = Cache::new(&name, Some("/proc/nothing/x.json".into()), Duration::ZERO);
        cache.save(&Catalogue::default(), false);
        assert!(cache.load().is_none());
    }
}
