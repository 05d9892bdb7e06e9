//! The places of Lockhouse's own files that are in force. Programs and sandboxed upstream servers never get them, even
//! if a folder that contains them is granted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The places of Lockhouse's own files. All paths are absolute; none of them need exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPlaces {
    /// Files, such as the configuration, the policy, and files with secrets; and sockets.
    pub files: BTreeSet<PathBuf>,
    /// Folders with everything below them, such as the audit log and the skills.
    pub folders: BTreeSet<PathBuf>,
    /// Programs, libraries, and folders with code: Python packages, and the caches of upstream servers. They are no
    /// secrets, and package managers make hard links to many of them.
    pub code: BTreeSet<PathBuf>,
    /// Programs and scripts of upstream servers. The profile of a sandbox does not withhold the folders that contain
    /// them, since a server may work on the folder in which others are developed.
    pub server_programs: BTreeSet<PathBuf>,
}

impl OwnPlaces {
    /// Adds the places of another configuration that is in force too.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
        self.code.extend(other.code);
        self.server_programs.extend(other.server_programs);
    }

    /// Returns the paths of all files and folders.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let own = self.files.iter().chain(&self.folders).chain(&self.code);
        own.chain(&self.server_programs).map(PathBuf::as_path)
    }
}
