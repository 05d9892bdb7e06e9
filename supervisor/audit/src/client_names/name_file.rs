//! The file with the names and their keys, one JSON object a line. Processes append to it and replace it under a lock.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use lockhouse_base::files::{self, FileVersion};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Name of the file, beside the segments.
const FILE: &str = "names.jsonl";
/// Maximum size of the file in bytes: the maximum number of names, each of the maximum length in JSON.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const KEY_BYTES: usize = 16;
/// Bytes of the hash in an id: two names cannot be found for one id.
const ID_BYTES: usize = 24;

/// A name with its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NameLine {
    key: String,
    pub(super) name: String,
    /// The account whose records have the name.
    pub(super) uid: u32,
    /// The day from which on the id is used, as `YYYY-MM-DD`.
    pub(super) since: String,
}

impl NameLine {
    pub(super) fn new(name: &str, uid: u32, since: String) -> io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self { key: HEXLOWER.encode(&key), name: name.to_owned(), uid, since })
    }

    /// Returns the id that records have.
    pub(super) fn id(&self) -> String {
        let hash = Sha256::digest(format!("{}\n{}", self.key, self.name));
        format!("name:{}", BASE64URL_NOPAD.encode(&hash[..ID_BYTES]))
    }
}

/// The locked file.
#[derive(Debug)]
pub(super) struct NameFile {
    path: PathBuf,
    _lock: Flock<File>,
}

impl NameFile {
    /// Waits for the lock. Others hold it while they read or append a line.
    pub(super) fn lock(directory: &Path) -> io::Result<Self> {
        let lock = Flock::lock(File::open(directory)?, FlockArg::LockExclusive);
        Ok(Self { path: directory.join(FILE), _lock: lock.map_err(|(_, error)| error)? })
    }

    /// Returns the version of the file, by which a process finds out that another one changed it. `None` if there is none.
    pub(super) fn version(directory: &Path) -> io::Result<Option<FileVersion>> {
        FileVersion::try_of(&directory.join(FILE))
    }

    pub(super) fn read(&self) -> io::Result<Vec<NameLine>> {
        read(&self.path)
    }

    /// Reads the file for somebody who may not lock it. A line that is being written is omitted.
    pub(super) fn read_without_lock(directory: &Path) -> io::Result<Vec<NameLine>> {
        read(&directory.join(FILE))
    }

    pub(super) fn append(&mut self, line: &NameLine) -> io::Result<()> {
        let mut file = files::open_to_append(&self.path)?;
        files::give_to_owner_of_directory(&file, &self.path)?;
        // A line that was written in part stays alone.
        file.write_all(format!("\n{}\n", serde_json::to_string(line)?).as_bytes())
    }

    /// Removes the other lines.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&NameLine) -> bool) -> io::Result<()> {
        let all = self.read()?;
        let kept: Vec<&NameLine> = all.iter().filter(|line| is_kept(line)).collect();
        if kept.len() == all.len() {
            return Ok(());
        }
        let mut text = String::new();
        for line in kept {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        files::replace_for_service(&self.path, text.as_bytes())
    }
}

fn read(path: &Path) -> io::Result<Vec<NameLine>> {
    let text = files::read_bounded(path, FILE_BYTES_MAX)?.unwrap_or_default();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
