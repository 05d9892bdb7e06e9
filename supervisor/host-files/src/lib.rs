//! Files of this machine that the configuration lets programs read or write: the built-in server `files`.
//!
//! # Parts
//!
//! - `pattern.rs` are the configured paths. `reserved_places.rs` are those that no pattern can grant: Lockhouse's own
//!   files, interpreters, servers' programs.
//! - `file_system.rs` opens and lists files, `new_file.rs` and `new_folder.rs` make them. `file_calls.rs` are the calls
//!   of the server.
//! - `symlinks.rs` resolves the links in path arguments of calls, of this server and of upstream servers.
//! - `staged_file.rs` is the content of a file that waits for a decision.
//! - `helper.rs` is the server `files` in the session of a person: a process that answers the requests of the engine of the
//!   system, which has another account.
//!
//! # Invariants
//!
//! - No worker opens a file of the host. The supervisor opens it, after the gate permitted the call.
//! - No access is without a call: each is decided by the policy, shown to the approver and recorded like a call of an
//!   upstream server.
//! - No symbolic link is followed while a path is opened. Links are resolved before the decision, so the policy, the
//!   approver and the audit log see the file that is opened.
//! - No file is written in part. The whole content is received, in a file without a name, before anything is decided
//!   about it.
//! - No file exists for a program that the configuration does not name: a refused path and an absent one look the same
//!   to `exists`.
//!
//! # Decisions
//!
//! - Files are a server like others, so that one policy, one approval and one audit log cover them.
//! - The configuration says which files exist for programs at all, and the policy which of them a program may use. A
//!   path must match as it is written, and so must the target of its links.
//! - If links were not resolved, a policy that permits a directory would also permit the targets of links in it.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod file_calls;
mod file_error;
mod file_system;
mod helper;
mod new_file;
mod new_folder;
mod pattern;
mod reserved_places;
mod staged_file;
mod symlinks;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use lockhouse_base::own_places::OwnPlaces;
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use file_calls::{
    Content, FileCall, file_failure, make_content_readable, perform, require_size, write_staged,
};
pub use file_error::FileError;
use file_system::{FileFacts, FolderEntry};
pub use helper::{FileAnswer, FileRequest, HelperSettings, Resolution, UnusablePath, answer_requests};
use new_file::NewFile;
pub use pattern::{FilePattern, InvalidFilePattern};
use reserved_places::ReservedPlaces;
pub use staged_file::{StagedContent, StagedFile};
pub use symlinks::resolve_paths;

/// Maximum number of patterns of each list in the configuration of the server `files`.
/// Bound: files of the host.
pub const FILE_PATTERNS_MAX: usize = 100;
/// The name of the server, and its name if another server is called `files`.
pub const FILES_NAMES: [&str; 2] = ["files", "lockhouse_files"];
/// Maximum length of a path in bytes, as in Linux.
/// Bound: files of the host.
const PATH_BYTES_MAX: usize = 4_096;
/// Folders whose files are not data: the kernel generates them, and some contain secrets of processes.
const KERNEL_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The MCP definitions of the server's tools, as an upstream server would list them.
const TOOLS: [&str; 5] = [
    r#"{"name": "read", "description": "Reads a part of a file as base64. Code reads a whole file with open(path).",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {"path": {"type": "string"},
"offset": {"type": "integer", "minimum": 0}, "length": {"type": "integer", "minimum": 1}}}, "annotations": {"readOnlyHint": true}}"#,
    r#"{"name": "list", "description": "Lists the files and folders in a folder.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {"path": {"type": "string"}}},
"annotations": {"readOnlyHint": true}}"#,
    r#"{"name": "stat", "description": "Returns the kind, the size and the time of a file or folder.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {"path": {"type": "string"}}},
"annotations": {"readOnlyHint": true}}"#,
    r#"{"name": "write", "description": "Writes a file, and replaces one of this name: give text or base64. Code can also use open(path, \"w\").",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {"path": {"type": "string"},
"text": {"type": "string"}, "base64": {"type": "string"}}},
"annotations": {"readOnlyHint": false, "destructiveHint": true}}"#,
    r#"{"name": "mkdir", "description": "Makes a folder in an existing one. The result says whether it was new. Code can also use os.makedirs.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["path"], "properties": {"path": {"type": "string"}}},
"annotations": {"readOnlyHint": false, "destructiveHint": false}}"#,
];

/// The tool catalogue (parsed definitions) of the server.
pub static FILES_CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::from_definitions(TOOLS.into_iter()).0));

/// Returns the tool catalogue of the server, for commands of the user.
pub fn files_catalogue() -> Catalogue {
    Catalogue::from_definitions(TOOLS.into_iter()).0
}

/// The configuration of the built-in server `files`. Without patterns, the server does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFileSettings {
    /// `files`, or `lockhouse_files` if an upstream server is called `files`.
    pub name: ServerName,
    /// The files that programs may read, if the policy permits it.
    pub read: Vec<FilePattern>,
    /// The files that programs may write, if the policy permits it.
    pub write: Vec<FilePattern>,
    /// Maximum size in bytes of a file that is read or written.
    pub file_bytes: u64,
    /// The home directory, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// Whether a helper in the session of a person uses the files, with the rights of that person. Otherwise, this process
    /// does.
    pub is_in_session: bool,
    /// The places of Lockhouse's own files, which no pattern opens.
    pub own: OwnPlaces,
}

/// The built-in server `files` with its configuration. Clones share it.
#[derive(Clone, Debug)]
pub struct HostFiles {
    settings: Arc<HostFileSettings>,
    /// Lockhouse's own places of this and all other configurations of the process: a part of an earlier one may stay in
    /// force until a restart, and runs that began under it must not reach the places of a later one.
    own: Arc<Mutex<Arc<OwnPlaces>>>,
    /// The number of configurations of the process before this one.
    revision: u64,
    /// The last configuration that the administrator's requirements determined, with its revision. All configurations share
    /// it.
    required: Arc<Mutex<Option<RequiredSettings>>>,
}

/// A configuration that the administrator's requirements determined, and its revision.
#[derive(Debug)]
struct RequiredSettings {
    revision: u64,
    settings: Arc<HostFileSettings>,
}

/// The way in which a program uses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Reads the content of a file.
    Read,
    /// Asks for the facts of a file or folder, or for the entries of a folder.
    Browse,
    Write,
    /// Makes a folder for files that may be written.
    MakeFolder,
}

/// The path of a call.
#[derive(Debug)]
pub struct ResolvedPath {
    /// The path as written, with the home directory in place of `~`.
    pub written: String,
    /// The path without symbolic links to which it leads.
    pub target: String,
}

/// Why a path cannot be used by programs, whatever the policy says.
#[derive(Debug, thiserror::Error)]
pub enum PathRefusal {
    #[error(
        "a path must be absolute, or begin with ~/, and have no `.`, `..`, empty parts and control characters"
    )]
    NotNormal,
    #[error("a path must have at most {PATH_BYTES_MAX} bytes")]
    TooLong,
    #[error(
        "programs cannot {verb} this path: a person can add it to `{verb}` of [servers.{server}] in the configuration, which has {granted}"
    )]
    NotGranted { verb: &'static str, server: ServerName, granted: String },
    #[error(
        "a symbolic link in this path leads to a file that is not in `{verb}` of [servers.{server}] of the configuration"
    )]
    LeadsElsewhere { verb: &'static str, server: ServerName },
    #[error("no program can use files of the kernel and of Lockhouse itself")]
    Reserved,
    #[error(
        "the administrator's requirements have changed the files that programs may use: run the program again"
    )]
    Withdrawn,
    #[error(
        "the path cannot be resolved: a symbolic link in it leads nowhere, or the user of Lockhouse cannot read a folder"
    )]
    Unresolvable,
}

impl HostFileSettings {
    /// Whether programs can use any files. Otherwise, the server does not exist.
    pub fn is_on(&self) -> bool {
        !self.read.is_empty() || !self.write.is_empty()
    }
}

impl Access {
    fn verb(self) -> &'static str {
        match self {
            Self::Read | Self::Browse => "read",
            Self::Write | Self::MakeFolder => "write",
        }
    }
}

impl HostFiles {
    pub fn new(settings: HostFileSettings) -> Self {
        let own = Arc::new(Mutex::new(Arc::new(settings.own.clone())));
        Self { settings: Arc::new(settings), own, revision: 0, required: Arc::default() }
    }

    /// Returns the server with another configuration. From now on, both reserve the own places of both.
    pub fn reconfigured(&self, settings: HostFileSettings) -> Self {
        Arc::make_mut(&mut self.own.lock()).extend(settings.own.clone());
        Self {
            settings: Arc::new(settings),
            own: self.own.clone(),
            revision: self.revision + 1,
            required: self.required.clone(),
        }
    }

    /// From now on, earlier configurations of the server that grant other paths grant nothing, because the administrator
    /// requires this one.
    pub fn require(&self) {
        *self.required.lock() =
            Some(RequiredSettings { revision: self.revision, settings: self.settings.clone() });
    }

    /// Whether the administrator has required another configuration since this one was in force.
    pub fn is_withdrawn(&self) -> bool {
        let required = self.required.lock();
        let Some(RequiredSettings { revision, settings }) = &*required else { return false };
        let own = &self.settings;
        let is_same =
            own.read == settings.read && own.write == settings.write && own.file_bytes == settings.file_bytes;
        self.revision < *revision && !is_same
    }

    pub fn settings(&self) -> &HostFileSettings {
        &self.settings
    }

    /// Opens the file at a path without symbolic links to read it, and returns it with its size. Blocks.
    pub fn open_file(&self, path: &Path) -> Result<(File, u64), FileError> {
        file_system::open_file(path, self.settings.file_bytes, &self.reserved_places())
    }

    /// Begins to write the file at a path without symbolic links. Blocks.
    pub(crate) fn create_file(&self, path: &Path, replaces: Option<&str>) -> Result<NewFile, FileError> {
        NewFile::create(path, replaces, &self.reserved_places())
    }

    /// Describes the regular file at a path without links: see [`new_file::describe_existing`].
    pub fn describe_existing(&self, path: &Path) -> Option<String> {
        new_file::describe_existing(path, &self.reserved_places())
    }

    /// Makes the folder at a path without links: see [`new_folder::make_folder`].
    pub(crate) fn make_folder(&self, path: &Path) -> Result<bool, FileError> {
        new_folder::make_folder(path, &self.reserved_places())
    }

    /// Lists the folder at a path without links: see [`file_system::list`]. A symbolic link is listed if programs could open
    /// it: its path and its target are granted, and the target is found without following any link. Blocks.
    pub(crate) fn list(&self, path: &Path, most: usize) -> Result<(Vec<FolderEntry>, bool), FileError> {
        let reserved = self.reserved_places();
        let is_shown = |name: &str, facts: &FileFacts| self.shows(&path.join(name), facts);
        let follow = |name: &str| {
            let link = path.join(name);
            // A folder is granted for browsing only, so this is the wider question; `shows` asks by kind.
            let resolved = self.resolve_with(Access::Browse, link.to_str()?, &reserved).ok()?;
            let target = Path::new(&resolved.target);
            let facts = file_system::stat(target, &reserved).ok()?;
            // A program that enters each folder would enter one above the link again and again.
            let is_loop = facts.is_folder && path.starts_with(target);
            let is_shown = self.shows(&link, &facts) && self.shows(target, &facts) && !is_loop;
            is_shown.then_some((resolved.target, facts))
        };
        file_system::list(path, most, &reserved, is_shown, follow)
    }

    /// Looks up the places that no program may use. Blocks.
    fn reserved_places(&self) -> ReservedPlaces {
        let own = self.own.lock().clone();
        ReservedPlaces::look_up(own)
    }

    /// Returns the path of a call, and the path without symbolic links to which it leads. Blocks.
    ///
    /// # Errors
    /// If the configuration does not let programs use the path as written, or its target.
    pub fn resolve(&self, access: Access, path: &str) -> Result<ResolvedPath, PathRefusal> {
        self.resolve_with(access, path, &self.reserved_places())
    }

    /// Resolves the path of a call, and describes the file that a write replaces. Blocks.
    ///
    /// # Errors
    /// As for [`Self::resolve`].
    pub fn resolution(&self, access: Access, path: &str) -> Result<Resolution, UnusablePath> {
        let target = self.resolve(access, path)?.target;
        let replaces =
            if access == Access::Write { self.describe_existing(Path::new(&target)) } else { None };
        Ok(Resolution { target, replaces })
    }

    fn resolve_with(
        &self,
        access: Access,
        path: &str,
        reserved: &ReservedPlaces,
    ) -> Result<ResolvedPath, PathRefusal> {
        let written = self.written(access, path)?;
        let real = resolve_paths(vec![written.clone()]).remove(&written).ok_or(PathRefusal::Unresolvable)?;
        let target = Path::new(&real);
        if KERNEL_FOLDERS.iter().any(|folder| target.starts_with(folder))
            || file_system::is_reserved(target, reserved)
        {
            return Err(PathRefusal::Reserved);
        }
        match self.is_granted(access, target, true) {
            true => Ok(ResolvedPath { written, target: real }),
            false => {
                let (verb, server) = (access.verb(), self.settings.name.clone());
                Err(PathRefusal::LeadsElsewhere { verb, server })
            }
        }
    }

    /// Returns the path of a call as written, with the home directory in place of `~`. Does not look at the file system.
    ///
    /// # Errors
    /// If the configuration does not let programs use the path as written.
    pub fn written(&self, access: Access, path: &str) -> Result<String, PathRefusal> {
        if self.is_withdrawn() {
            return Err(PathRefusal::Withdrawn);
        }
        let written = self.normal(path)?;
        if self.is_granted(access, &written, false) {
            return Ok(written.to_string_lossy().into_owned());
        }
        let texts: Vec<&str> = self.patterns(access).iter().map(FilePattern::as_str).take(20).collect();
        let granted = if texts.is_empty() { "no paths".to_owned() } else { texts.join(", ") };
        let (verb, server) = (access.verb(), self.settings.name.clone());
        Err(PathRefusal::NotGranted { verb, server, granted })
    }

    fn patterns(&self, access: Access) -> &[FilePattern] {
        match access {
            Access::Read | Access::Browse => &self.settings.read,
            Access::Write | Access::MakeFolder => &self.settings.write,
        }
    }

    /// Whether the configuration names the path, or, for a folder, could name a file below it. With `is_target`, the roots of
    /// the patterns are compared with their symbolic links resolved as well.
    fn is_granted(&self, access: Access, path: &Path, is_target: bool) -> bool {
        self.patterns(access).iter().any(|pattern| {
            let fits = |root: &Path| {
                pattern.matches(root, path)
                    || matches!(access, Access::Browse | Access::MakeFolder)
                        && path.starts_with(root)
                        && pattern.may_match_below(root, path)
            };
            fits(pattern.root())
                || is_target && std::fs::canonicalize(pattern.root()).is_ok_and(|root| fits(&root))
        })
    }

    /// Whether a program may know of the file or folder at a path without links: it may read the file, or could read
    /// files in the folder.
    fn shows(&self, path: &Path, facts: &FileFacts) -> bool {
        let access = if facts.is_folder { Access::Browse } else { Access::Read };
        self.is_granted(access, path, true)
    }

    /// Returns the path with the home directory in place of `~`. Fails unless it is absolute and normalised.
    fn normal(&self, path: &str) -> Result<PathBuf, PathRefusal> {
        if path.len() > PATH_BYTES_MAX {
            return Err(PathRefusal::TooLong);
        }
        let is_normal = |name: &str| !matches!(name, "" | "." | "..") && !name.chars().any(char::is_control);
        let (base, rest) = match (path.strip_prefix("~/"), path.strip_prefix('/')) {
            (Some(rest), _) => (self.settings.home.clone().ok_or(PathRefusal::NotNormal)?, rest),
            (None, Some(rest)) => (PathBuf::from("/"), rest),
            (None, None) => return Err(PathRefusal::NotNormal),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        match rest.is_empty() || rest.split('/').all(is_normal) {
            true => Ok(base.join(rest)),
            false => Err(PathRefusal::NotNormal),
        }
    }
}

#[cfg(test)]
mod tests;
