//! Looks up the values of a server as they are written in the configuration file, with placeholders. The loaded
//! settings only contain the resolved values.

use lockhouse_base::text_files::read_source;
use lockhouse_upstream::ServerDefinition;
use toml_edit::{DocumentMut, Item};

use super::{Files, search_paths};

/// The `[servers.NAME]` table of a server, with placeholders that are not resolved. `None` if the server comes from
/// another file than `config.toml`.
#[derive(Default)]
pub struct UnresolvedServer(Option<Item>);

impl UnresolvedServer {
    /// Loads the table of a server from the configuration file.
    pub fn load(files: &Files, name: &str, server: &ServerDefinition) -> Self {
        let path = search_paths::config_file(files.config.as_deref(), "config.toml");
        let path = path.filter(|path| server.origin.starts_with(&*path.to_string_lossy()));
        let document = path.and_then(|path| read_source(&path).ok()?.text.parse::<DocumentMut>().ok());
        Self(document.and_then(|document| document.get("servers")?.get(name).cloned()))
    }

    /// Returns the text that the file contains for a key in a subtable such as `env`. `None` if there is no such key.
    pub fn text(&self, table: &str, key: &str) -> Option<String> {
        Some(self.0.as_ref()?.get(table)?.get(key)?.as_str()?.to_owned())
    }
}
