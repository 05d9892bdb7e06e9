//! The cache file with the tools of an upstream server and the MCP handshake of its last start. The cached tools are
//! used until the server has started, and while it is not available.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lockhouse_base::files;
use lockhouse_catalog::{Catalogue, DEFINITIONS_BYTES_MAX};
use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::definition::ServerDefinition;
use super::storage_paths::StoragePaths;

/// Version of the file format. Files with another version are ignored.
const VERSION: u32 = 1;
/// The maximum size of a cache file is the sum of two numbers: the maximum size of the tool definitions in it, and this
/// number of bytes for everything else. A larger file is not used.
const OVERHEAD_BYTES: usize = 64 * 1024;

/// The cache file of one upstream server.
pub(super) struct ToolCache {
    name: ServerName,
    path: Option<PathBuf>,
    /// How long cached tools are valid after they were saved.
    lifetime: Duration,
}

#[derive(Deserialize)]
struct Record<'a> {
    version: u32,
    /// When the tools were saved, as Unix time in seconds.
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

/// The content of an upstream server's cache file: its tools and the handshake of its last start.
pub(super) struct CachedTools {
    pub(super) catalogue: Catalogue,
    /// Whether the server was last started with the older MCP handshake (`initialize`) and no probe for the newest
    /// protocol version.
    pub(super) legacy: bool,
    /// Whether the cached tools have expired. Expired tools are used only if the server cannot be started.
    pub(super) expired: bool,
}

/// Returns the cached tools of an upstream server, without connecting to it; `None` if there is no valid cache file.
pub fn cached_tools(
    name: &ServerName,
    definition: &ServerDefinition,
    places: &StoragePaths,
) -> Option<Catalogue> {
    let cache = ToolCache::new(name, places.tools_file(name, definition), places.tools_ttl);
    Some(cache.load()?.catalogue)
}

impl ToolCache {
    pub(super) fn new(name: &ServerName, path: Option<PathBuf>, lifetime: Duration) -> Self {
        Self { name: name.clone(), path, lifetime }
    }

    /// Loads the cache file; `None` if it is missing or invalid.
    pub(super) fn load(&self) -> Option<CachedTools> {
        let text = files::read_bounded(self.path.as_ref()?, (DEFINITIONS_BYTES_MAX + OVERHEAD_BYTES) as u64);
        let text =
            text.inspect_err(|error| tracing::debug!(server = %self.name, "no remembered tools: {error}"));
        let text = text.ok()??;
        let record: Record<'_> =
            serde_json::from_str(&text).ok().filter(|r: &Record<'_>| r.version == VERSION)?;
        // If the clock was set back, the file appears to be from the future and is ignored.
        let age = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(record.saved))
            .ok()?;
        let catalogue = Catalogue::from_definitions(record.tools.iter().map(|tool| tool.get())).0;
        Some(CachedTools { catalogue, legacy: record.legacy, expired: age >= self.lifetime })
    }

    /// Saves the server's tools to the cache file, with `legacy` as in [`CachedTools`]. A failure is only logged, since
    /// the next start can list the tools again.
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
        let cache = |lifetime| ToolCache::new(&name, Some(path.clone()), lifetime);
        let day = Duration::from_secs(86_400);
        assert!(cache(day).load().is_none());
        let definition = r#"{"name":"log","vendorExtra":[1,2]}"#;
        cache(day).save(&Catalogue::from_definitions([definition].into_iter()).0, true);
        let loaded = cache(day).load().expect("a record");
        assert!(loaded.legacy && !loaded.expired);
        assert_eq!(loaded.catalogue.tools[0].definition(), definition);
        assert!(cache(Duration::ZERO).load().is_some_and(|loaded| loaded.expired));
        let future = std::fs::read_to_string(&path).expect("text").replace("\"saved\":1", "\"saved\":9");
        for failure_signal in ["", "{}", "[", r#"{"version":2,"saved":0,"legacy":true,"tools":[]}"#, &future]
        {
            std::fs::write(&path, failure_signal).expect("a file");
            assert!(cache(day).load().is_none(), "{failure_signal}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_failure() {
        let name = ServerName::new("x").expect("a name");
        let cache = ToolCache::new(&name, Some("/proc/nothing/x.json".into()), Duration::ZERO);
        cache.save(&Catalogue::default(), false);
        assert!(cache.load().is_none());
    }
}
