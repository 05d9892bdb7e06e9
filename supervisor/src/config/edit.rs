//! Changing `config.toml` for a person. Comments, order and everything else stay as they are, nobody meets half a file,
//! and a change that the configuration would not survive is not made.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::text_files::read_source;
use nix::fcntl::{Flock, FlockArg};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::{ConfigError, Files, Settings, locate};

/// The file, read for a change.
pub(crate) struct Edit {
    path: PathBuf,
    document: DocumentMut,
    /// Its mode and owner; of a new file there is none.
    existing: Option<std::fs::Metadata>,
    /// Held until the change is made, so that of two changes at one time none is lost. On the directory: the file itself
    /// is replaced.
    _lock: Flock<std::fs::File>,
}

impl Edit {
    /// Reads the file named by `--config`, else the user's own, which need not exist.
    pub(crate) fn open(files: &Files) -> Result<Self, ConfigError> {
        let named = target(files)?;
        // A link stays one: what it points at is changed.
        let path = std::fs::canonicalize(&named).unwrap_or(named);
        let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(unwritable)?;
        let lock = std::fs::File::open(directory).map_err(unwritable)?;
        let lock =
            Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| unwritable(error.into()))?;
        let existing = std::fs::metadata(&path).ok();
        let text = if existing.is_some() { read_source(&path)?.text } else { String::new() };
        let document = text.parse::<DocumentMut>().map_err(|error| ConfigError::Unusable {
            path: path.clone(),
            // Without its line, which may hold a secret.
            reason: error.message().to_owned(),
        })?;
        Ok(Self { path, document, existing, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn server(&self, name: &str) -> Option<&dyn TableLike> {
        self.document.get("servers")?.as_table_like()?.get(name)?.as_table_like()
    }

    /// Adds a server, or replaces the one of this name.
    pub(crate) fn set_server(&mut self, name: &str, mut server: Table) {
        let mut servers = Table::new();
        servers.set_implicit(true);
        let servers = self.document.entry("servers").or_insert(Item::Table(servers));
        let inline = servers.is_inline_table();
        let Some(servers) = servers.as_table_like_mut() else { return };
        let item = if inline {
            Item::Value(server.into_inline_table().into())
        } else {
            let first = servers.is_empty() && self.existing.is_none();
            server.decor_mut().set_prefix(if first { "" } else { "\n" });
            Item::Table(server)
        };
        servers.remove(name);
        servers.insert(name, item);
    }

    /// Takes a server out, with its tables.
    pub(crate) fn remove_server(&mut self, name: &str) -> bool {
        let Some(servers) = self.document.get_mut("servers").and_then(Item::as_table_like_mut) else {
            return false;
        };
        match servers.remove(name) {
            Some(Item::Table(table)) => {
                let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
                self.keep_comments(prefix, table.position());
                true
            }
            removed => removed.is_some(),
        }
    }

    /// Comments that an empty line separates from the table they stand before are not about it.
    fn keep_comments(&mut self, prefix: &str, position: Option<isize>) {
        let Some((kept, _)) = prefix.rsplit_once("\n\n") else { return };
        if kept.trim().is_empty() {
            return;
        }
        let next = next_position(self.document.as_table(), position.unwrap_or_default());
        let kept = format!("{kept}\n");
        let kept_its_place = next.is_some_and(|next| prepend(self.document.as_table_mut(), next, &kept));
        if !kept_its_place {
            let trailing = self.document.trailing().as_str().unwrap_or_default().to_owned();
            self.document.set_trailing(format!("{kept}{trailing}"));
        }
    }

    /// The file as it would be.
    pub(crate) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Writes the file, once it has been found to load.
    pub(crate) fn save(self, files: &Files) -> Result<(), ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.path.clone(), source };
        let draft = Draft::write(&self).map_err(unwritable)?;
        let drafted = Files { config: Some(draft.0.clone()), servers: Vec::new(), ..files.clone() };
        if let Err(error) = Settings::load(&drafted) {
            let reason = error.to_string().replace(&*draft.0.to_string_lossy(), &self.path.to_string_lossy());
            return Err(ConfigError::Refused { path: self.path.clone(), reason });
        }
        std::fs::rename(&draft.0, &self.path).map_err(unwritable)
    }
}

/// The new text, beside the old one. It goes with its owner unless it has taken the old one's place.
struct Draft(PathBuf);

impl Draft {
    fn write(edit: &Edit) -> std::io::Result<Self> {
        let name = edit.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = Self(edit.path.with_file_name(format!(".{name}.{}", std::process::id())));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft.0)?;
        file.write_all(edit.text().as_bytes())?;
        if let Some(existing) = &edit.existing {
            file.set_permissions(std::fs::Permissions::from_mode(existing.permissions().mode() & 0o7777))?;
            let is = file.metadata()?;
            if (is.uid(), is.gid()) != (existing.uid(), existing.gid()) {
                std::os::unix::fs::fchown(&file, Some(existing.uid()), Some(existing.gid()))?;
            }
        }
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where a change is written.
fn target(files: &Files) -> Result<PathBuf, ConfigError> {
    if let Some(named) = &files.config {
        return Ok(named.clone());
    }
    let own = directories::configuration().ok_or(ConfigError::NoConfigDirectory)?.join("config.toml");
    match locate::file(None, "config.toml") {
        // One file is in force, and a new one would take the place of the system's with all that it sets.
        Some(system) if system != own => Err(ConfigError::SystemWide { path: system }),
        _ => Ok(own),
    }
}

/// The position of the table that comes next in the file.
fn next_position(table: &Table, after: isize) -> Option<isize> {
    let below = table.iter().filter_map(|(_, item)| item.as_table());
    let positions = below.flat_map(|table| {
        let own = table.position().filter(|position| *position > after && !table.is_implicit());
        own.into_iter().chain(next_position(table, after))
    });
    positions.min()
}

/// Puts text before the table of that position.
fn prepend(table: &mut Table, position: isize, text: &str) -> bool {
    table.iter_mut().filter_map(|(_, item)| item.as_table_mut()).any(|table| {
        if table.position() != Some(position) || table.is_implicit() {
            return prepend(table, position, text);
        }
        let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let prefix = format!("{text}{prefix}");
        table.decor_mut().set_prefix(prefix);
        true
    })
}
