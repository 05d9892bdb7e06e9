//! Looks up the original text of a server's values in the configuration file, where the settings contain resolved
//! placeholders.

use lockhouse_base::text_files::read_source;
use lockhouse_upstream::ServerDefinition;
use toml_edit::{DocumentMut, Item};

use super::{Files, search_paths};

/// The `[servers.NAME]` table with unresolved placeholders; `None` if the server comes from another file.
#[derive(Default)]
pub(crate) struct UnresolvedServer(Option<Item>);

impl UnresolvedServer {
    /// Loads the table of a server from the configuration file.
    pub(crate) fn load(files: &Files, name: &str, server: &ServerDefinition) -> Self {
        let path = search_paths::config_file(files.config.as_deref(), "config.toml");
        let path = path.filter(|path| server.origin.starts_with(&*path.to_string_lossy()));
        let document = path.and_then(|path| read_source(&path).ok()?.text.parse::<DocumentMut>().ok());
        Self(document.and_then(|document| document.get("servers")?.get(name).cloned()))
    }

    /// Returns the text of a key in a subtable such as `env`.
    pub(crate) fn text(&self, table: &str, key: &str) -> Option<String> {
        Some(self.0.as_ref()?.get(table)?.get(key)?.as_str()?.to_owned())
    }
}
