//! The paths that the configuration of an upstream server names: in its command, arguments, working directory and
//! environment variables. The profile `default` grants them.
//!
//! A server can change what is in a folder that was granted to it, and the paths are read again at its next start. So a
//! path is not granted if it leads through a symbolic link that this user could have created: the server could extend
//! its own permissions by such a link.

mod candidates;
mod package_folder;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::SandboxPlaces;
use super::program::program_files;
use super::protected_paths::{Place, ProtectedPaths};
use crate::definition::ServerCommand;
use candidates::{Candidate, Use, candidates};

/// The maximum number of named paths that are considered for one server.
const PATHS_MAX: usize = 64;
/// Directories that every sandboxed server may read, or that are not files of the user. Paths in them are not granted.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/dev", "/proc", "/sys"];
/// Extensions of files that programs execute and do not change.
const SCRIPTS: [&str; 11] = ["js", "mjs", "cjs", "ts", "mts", "py", "pyz", "rb", "php", "jar", "sh"];

/// The paths that a server's configuration names, with the permissions that the profile `default` gives for them. The
/// granted paths have no symbolic links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedPaths {
    /// Paths that the server may read, and execute.
    pub read: Vec<PathBuf>,
    /// Paths that the server may change.
    pub write: Vec<PathBuf>,
    /// Paths that are not granted.
    pub withheld: Vec<Withheld>,
}

/// A path in a server's configuration that the profile `default` does not grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Withheld {
    pub path: PathBuf,
    /// Why the path is not granted, for users.
    pub reason: &'static str,
}

impl Withheld {
    /// Whether the path is that of a file which the server can change only in a folder of its own.
    #[must_use]
    pub fn needs_folder(&self) -> bool {
        [MISSING, NOT_REPLACEABLE].contains(&self.reason)
    }
}

const CONTAINS_PROTECTED: &str =
    "it contains keys, credentials or settings of other programs, or files of Lockhouse itself";
const IS_PROTECTED: &str =
    "it is a place of keys, credentials or settings of other programs, or of files of Lockhouse itself";
const MISSING: &str =
    "it does not exist, and its folder is not granted as a whole; name a file in a folder of its own instead";
const NOT_REPLACEABLE: &str = "the server may change the file, but not replace it by a new one, because its folder is not granted as a \
    whole; name a file in a folder of its own instead";
const LINK: &str = "it leads through a symbolic link; name the target of the link instead";
const SOCKET: &str = "it is a socket; `network = true` permits Unix sockets";
const TOO_MANY: &str = "the configuration names too many paths";

impl NamedPaths {
    /// Finds the paths. `home` is the home directory, without symbolic links. The server's own folder is granted anyway.
    pub(super) fn find(command: &ServerCommand, home: Option<&Path>, places: &SandboxPlaces) -> Self {
        let directory = command.directory.clone().or_else(|| std::env::current_dir().ok());
        let mut finder = Finder {
            protected: ProtectedPaths::new(home, &places.own),
            covered: places.folder.iter().cloned().collect(),
            found: Self::default(),
        };
        let mut named: Vec<Candidate> = candidates(command, home, directory.as_deref())
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        // A path in a granted folder has that folder's permissions, wherever a symbolic link leads.
        named.sort_by_key(|named| named.path.components().count());
        for (number, named) in named.iter().enumerate() {
            match number < PATHS_MAX {
                true => finder.add(named),
                false => finder.withhold(&named.path, TOO_MANY),
            }
        }
        let path = std::env::var_os("PATH");
        program_files(command, path.as_deref()).iter().for_each(|file| finder.add_package(file));
        finder.found
    }
}

struct Finder {
    protected: ProtectedPaths,
    /// Folders that the server may change, as they were named and without symbolic links.
    covered: Vec<PathBuf>,
    found: NamedPaths,
}

impl Finder {
    fn add(&mut self, named: &Candidate) {
        let path = &named.path;
        if SYSTEM.iter().any(|system| path.starts_with(system)) || self.is_covered(path) {
            return;
        }
        if leads_through_own_link(path) {
            return self.withhold(path, LINK);
        }
        match std::fs::metadata(path) {
            Ok(metadata) => self.add_existing(path, &metadata, named.purpose),
            Err(_) => self.add_missing(path),
        }
    }

    fn add_existing(&mut self, path: &Path, metadata: &Metadata, purpose: Use) {
        let Ok(resolved) = std::fs::canonicalize(path) else { return };
        let is_only_read =
            purpose == Use::Search || resolved.starts_with("/etc") || !is_changeable(&resolved);
        let place = match is_only_read {
            true => self.protected.place(&resolved),
            false => self.protected.place_to_change(&resolved),
        };
        if metadata.file_type().is_socket() {
            self.withhold(path, SOCKET);
        } else if metadata.is_dir() {
            match place {
                Place::Inside => self.withhold(path, IS_PROTECTED),
                Place::Above => self.withhold(path, CONTAINS_PROTECTED),
                Place::Elsewhere if is_only_read => self.read(resolved),
                Place::Elsewhere => self.read_and_write(path, resolved),
            }
        } else if is_only_read || has_extension(&resolved, &SCRIPTS) {
            self.add_package(path);
            self.read(resolved);
        } else if place == Place::Inside {
            // A file that the user has named for this server, such as the key file of a service account.
            self.read(resolved);
        } else if self.may_grant_parent(&resolved) {
            // Programs write a new file beside the old one and rename it, and databases have further files: rights that
            // depend on whether the file exists would change from the first start to the second.
            self.grant_parent(path);
        } else {
            self.found.write.push(resolved);
            self.withhold(path, NOT_REPLACEABLE);
        }
    }

    /// Grants the folder of a file that does not exist yet.
    fn add_missing(&mut self, path: &Path) {
        match path.parent() {
            // Other texts that begin with a slash, such as the path of a URL, are seldom in an existing folder.
            Some(parent) if parent != Path::new("/") && parent.is_dir() => {}
            _ => return,
        }
        match self.may_grant_parent(path) {
            true => self.grant_parent(path),
            false => self.withhold(path, MISSING),
        }
    }

    fn may_grant_parent(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        parent.is_some_and(|parent| {
            self.protected.place_to_change(&parent) == Place::Elsewhere && is_changeable(&parent)
        })
    }

    fn grant_parent(&mut self, path: &Path) {
        let Some(parent) = path.parent() else { return };
        if let Ok(resolved) = std::fs::canonicalize(parent) {
            self.read_and_write(parent, resolved);
        }
    }

    /// Grants the package of a program file: its virtual environment, `node_modules` or project folder. A file that the
    /// server can change says nothing about its package.
    fn add_package(&mut self, file: &Path) {
        if self.is_covered(file) || leads_through_own_link(file) && !is_program_link(file) {
            return;
        }
        for folder in package_folder::folders(file) {
            let is_free = self.protected.place(&folder) == Place::Elsewhere;
            if is_free && !SYSTEM.iter().any(|system| folder.starts_with(system)) && !self.is_covered(&folder)
            {
                self.read(folder);
            }
        }
    }

    fn is_covered(&self, path: &Path) -> bool {
        self.covered.iter().any(|folder| path.starts_with(folder))
    }

    fn read(&mut self, path: PathBuf) {
        if !self.found.read.contains(&path) {
            self.found.read.push(path);
        }
    }

    fn read_and_write(&mut self, named: &Path, resolved: PathBuf) {
        self.covered.extend([named.to_owned(), resolved.clone()]);
        // Programs in a project folder, such as those of a virtual environment, are executed.
        self.read(resolved.clone());
        self.found.write.push(resolved);
    }

    fn withhold(&mut self, path: &Path, reason: &'static str) {
        self.found.withheld.push(Withheld { path: path.to_owned(), reason });
    }
}

/// Whether this user can change a file.
fn is_changeable(path: &Path) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|known| extension == *known))
}

/// Whether a path leads through a symbolic link in a directory that this user can change.
pub(super) fn leads_through_own_link(path: &Path) -> bool {
    path.ancestors().any(|part| {
        let is_link = std::fs::symlink_metadata(part).is_ok_and(|metadata| metadata.is_symlink());
        is_link && part.parent().is_none_or(is_changeable)
    })
}

/// Whether a file is a link in a directory of programs, such as `venv/bin/python` or `node_modules/.bin/server`, which
/// package managers create.
fn is_program_link(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    directory.is_some_and(|name| name == "bin" || name == ".bin")
        && file.parent().is_some_and(|directory| !leads_through_own_link(directory))
}
