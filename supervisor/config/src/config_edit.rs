//! Edits `config.toml` for commands such as `lockhouse server add`. Comments and order are preserved, the file is
//! replaced atomically, and an edit that would make the configuration invalid is rejected.

use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::text_files::{Draft, read_source, write_target};
use nix::fcntl::{Flock, FlockArg};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use super::{ConfigError, Files, PackageSpec, Settings, search_paths, toml_tables};

/// The configuration file `config.toml`, opened for an edit.
pub struct ConfigEdit {
    path: PathBuf,
    document: DocumentMut,
    is_new: bool,
    /// A lock on the file's directory, held until the edit is saved, so that no concurrent edit is lost. The file
    /// itself cannot be locked, since saving replaces it.
    _lock: Flock<std::fs::File>,
}

impl ConfigEdit {
    /// Opens the configuration file that `--config` names, or else the user's own one, which need not exist.
    pub fn open(files: &Files) -> Result<Self, ConfigError> {
        let named = target_path(files)?;
        // A symbolic link is followed, and its target replaced, so that the link itself stays.
        let path = write_target(&named).map_err(|source| ConfigError::Unwritable { path: named, source })?;
        let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(unwritable)?;
        let lock = std::fs::File::open(directory).map_err(unwritable)?;
        let lock =
            Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| unwritable(error.into()))?;
        let is_new = !path.exists();
        let text = if is_new { String::new() } else { read_source(&path)?.text };
        let document = text.parse::<DocumentMut>().map_err(|error| ConfigError::Unusable {
            path: path.clone(),
            // The message without its source line, which may hold a secret.
            reason: error.message().to_owned(),
        })?;
        Ok(Self { path, document, is_new, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn server(&self, name: &str) -> Option<&dyn TableLike> {
        self.document.get("servers")?.as_table_like()?.get(name)?.as_table_like()
    }

    /// Adds the server, or replaces the server with this name.
    pub fn set_server(&mut self, name: &str, mut server: Table) {
        let mut servers = Table::new();
        servers.set_implicit(true);
        let servers = self.document.entry("servers").or_insert(Item::Table(servers));
        let inline = servers.is_inline_table();
        let Some(servers) = servers.as_table_like_mut() else { return };
        let item = if inline {
            Item::Value(server.into_inline_table().into())
        } else {
            let first = servers.is_empty() && self.is_new;
            server.decor_mut().set_prefix(if first { "" } else { "\n" });
            Item::Table(server)
        };
        servers.remove(name);
        servers.insert(name, item);
    }

    /// Lets AI clients share an engine, if the file is new. An existing configuration keeps what it says, or its default.
    pub fn share_engine_if_new(&mut self) {
        if self.is_new {
            let mut sharing = Table::new();
            sharing.insert("engine", Item::Value("shared".into()));
            sharing.decor_mut().set_prefix("\n");
            self.document.insert("sharing", Item::Table(sharing));
        }
    }

    /// Removes the server with all its subtables. Returns whether the server existed.
    pub fn remove_server(&mut self, name: &str) -> bool {
        toml_tables::remove(&mut self.document, "servers", name)
    }

    /// Sets the key `packages` of the table `[python]`. Comments of the key and of its entries that stay are kept.
    pub fn set_python_packages(&mut self, packages: &[PackageSpec]) {
        let python = self.document.entry("python").or_insert(Item::Table(Table::new()));
        let Some(python) = python.as_table_like_mut() else { return };
        let list = python.entry("packages").or_insert(Item::Value(Array::new().into()));
        let Some(list) = list.as_array_mut() else { return };
        list.retain(|entry| packages.iter().any(|package| entry.as_str() == Some(package.as_str())));
        for package in packages {
            if !list.iter().any(|entry| entry.as_str() == Some(package.as_str())) {
                list.push(package.as_str());
            }
        }
    }

    /// Returns the text of the edited file.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Checks that the edited configuration can be loaded, without the files of `--servers`, and then replaces the file
    /// atomically.
    pub fn save(self, files: &Files) -> Result<(), ConfigError> {
        self.prepare(files)?.commit()
    }

    /// Checks that the edited configuration can be loaded, without the files of `--servers`, and writes it beside the
    /// file. Nothing is changed until the result is committed.
    pub fn prepare(self, files: &Files) -> Result<PreparedEdit, ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.path.clone(), source };
        let draft = Draft::write(&self.path, &self.text()).map_err(unwritable)?;
        let drafted = Files { config: Some(draft.path.clone()), servers: Vec::new(), ..files.clone() };
        if let Err(error) = Settings::load(&drafted) {
            let reason =
                error.to_string().replace(&*draft.path.to_string_lossy(), &self.path.to_string_lossy());
            return Err(ConfigError::Refused { path: self.path.clone(), reason });
        }
        Ok(PreparedEdit { path: self.path, draft, _lock: self._lock })
    }
}

/// A checked edit, in a file beside the configuration file.
pub struct PreparedEdit {
    path: PathBuf,
    draft: Draft,
    _lock: Flock<std::fs::File>,
}

impl PreparedEdit {
    /// Replaces the configuration file atomically.
    pub fn commit(self) -> Result<(), ConfigError> {
        let Self { path, draft, _lock } = self;
        draft.publish().map_err(|source| ConfigError::Unwritable { path, source })
    }
}

/// Returns the path of the configuration file to edit. Fails if only a system-wide file exists.
fn target_path(files: &Files) -> Result<PathBuf, ConfigError> {
    if let Some(named) = &files.config {
        return Ok(named.clone());
    }
    let own = directories::configuration().ok_or(ConfigError::NoConfigDirectory)?.join("config.toml");
    match search_paths::config_file(None, "config.toml") {
        // Only one configuration file is used: a new user file would disable all settings of the system-wide file.
        Some(system) if system != own => Err(ConfigError::SystemWide { path: system }),
        _ => Ok(own),
    }
}
