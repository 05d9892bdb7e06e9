//! What our own configuration says of a server in so many words: references that the settings hold resolved.

use lockhouse_base::text_files::read_source;
use lockhouse_upstream::ServerDefinition;
use toml_edit::{DocumentMut, Item};

use super::{Files, locate};

/// `[servers.NAME]` as it is written, if that is where the server comes from.
#[derive(Default)]
pub(crate) struct Written(Option<Item>);

impl Written {
    /// Of a server that was loaded from these files.
    pub(crate) fn of(files: &Files, name: &str, server: &ServerDefinition) -> Self {
        let path = locate::file(files.config.as_deref(), "config.toml");
        let path = path.filter(|path| server.origin.starts_with(&*path.to_string_lossy()));
        let document = path.and_then(|path| read_source(&path).ok()?.text.parse::<DocumentMut>().ok());
        Self(document.and_then(|document| document.get("servers")?.get(name).cloned()))
    }

    /// The text of a key in one of its tables, such as `env`.
    pub(crate) fn text(&self, table: &str, key: &str) -> Option<String> {
        Some(self.0.as_ref()?.get(table)?.get(key)?.as_str()?.to_owned())
    }
}
