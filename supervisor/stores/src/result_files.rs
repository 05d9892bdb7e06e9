//! Files that programs return: files below `/out`, images and other bytes. They are stored on disk until they expire, and
//! are found by a handle like stored results. The store has bounds of its own, which AI clients share fairly.
//!
//! A service stores the files of its clients in a directory of the process, which it removes at its end. `lockhouse run`
//! stores them in a directory that later commands of the same user read.

mod directory;
mod file_name;
mod index;
mod media_type;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_messages::Owner;
use lockhouse_protocol::ResultHandle;
use parking_lot::Mutex;

use crate::results::Results;
use directory::{Directory, Place};
pub use file_name::{safe_name, unused_name};
use index::Index;
pub use media_type::{HEAD_BYTES, UNKNOWN, checked, default_name, media_type};

/// Maximum number of stored files of all AI clients together.
/// Bound: values and answers.
const COUNT_MAX: usize = 1_000;
/// Divisor of the byte limit of all stored files. The quotient is the maximum size of one file.
const FILE_SHARE: u64 = 4;

/// The configured limits of stored files.
#[derive(Clone, Copy, Debug)]
pub struct ResultFileLimits {
    /// Maximum number of bytes of all stored files together; 0 disables storing.
    pub bytes: u64,
    /// How long a file is stored.
    pub lifetime: Duration,
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub handle: ResultHandle,
    /// A name without `/`, control characters and leading dots.
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
}

/// Why a file is not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "files are not stored: files_mib of [results] in the configuration is 0, or there is no state directory"
    )]
    Off,
    #[error(
        "a returned file may have {most} bytes (a quarter of files_mib of [results] in the configuration)"
    )]
    TooLarge { most: u64 },
    #[error("the file is not stored: {0}")]
    Failed(#[from] std::io::Error),
    #[error("the file is not stored: the kernel provides no random numbers")]
    NoRandomNumbers,
}

/// The store of returned files. Clones share it.
#[derive(Clone, Debug)]
pub struct ResultFiles(Arc<Store>);

#[derive(Debug)]
struct Store {
    limits: ResultFileLimits,
    directory: Directory,
    index: Mutex<Index>,
}

/// A file that is being stored. If this value is dropped before its end, nothing remains.
#[derive(Debug)]
pub struct FileWriter {
    store: ResultFiles,
    owner: Owner,
    stored: StoredFile,
    file: File,
    /// The first bytes of the file, by which its media type is checked.
    head: Vec<u8>,
    is_finished: bool,
}

impl ResultFiles {
    /// Creates the store of a process that serves AI clients, below the state directory `state`. The directory of the
    /// store is created with its first file.
    pub fn of_process(state: Option<PathBuf>, limits: ResultFileLimits) -> Self {
        let place = state.map(|state| Place::Process(state.join("files")));
        Self(Arc::new(Store { limits, directory: Directory::new(place), index: Mutex::default() }))
    }

    /// Opens the store of `lockhouse run` below the state directory `state`, with the files of earlier runs. Expired files
    /// are removed.
    pub fn of_commands(state: Option<PathBuf>, limits: ResultFileLimits) -> Self {
        let place = state.map(|state| Place::Shared(state.join("files/run")));
        let directory = Directory::new(place);
        let index = Mutex::new(Index::with_files(directory.read_shared()));
        let store = Self(Arc::new(Store { limits, directory, index }));
        store.remove_expired();
        store
    }

    /// Begins to store a file. A file whose bytes are not the image or sound that `media_type` says gets another type.
    /// Blocks.
    pub fn begin(&self, owner: Owner, name: &str, media_type: String) -> Result<FileWriter, StoreError> {
        if self.0.limits.bytes == 0 {
            return Err(StoreError::Off);
        }
        let handle = Results::generate_handle().ok_or(StoreError::NoRandomNumbers)?;
        let file = self.0.directory.create(&handle)?.ok_or(StoreError::Off)?;
        let stored = StoredFile { handle, name: safe_name(name), media_type, bytes: 0 };
        Ok(FileWriter { store: self.clone(), owner, stored, file, head: Vec::new(), is_finished: false })
    }

    /// Creates a file without a name in the directory of the store, for content that belongs to no stored file. Blocks.
    ///
    /// # Errors
    /// If there is no state directory, or the file cannot be created.
    pub fn unnamed_file(&self) -> std::io::Result<File> {
        let missing = |what: &str| std::io::Error::other(format!("there is no {what}"));
        let handle = Results::generate_handle().ok_or_else(|| missing("source of random numbers"))?;
        let file = self.0.directory.create(&handle)?;
        self.0.directory.remove(&[handle]);
        file.ok_or_else(|| missing("state directory"))
    }

    /// Stores a file whose content is in memory. Blocks.
    pub fn store(
        &self,
        owner: Owner,
        name: &str,
        media_type: String,
        content: &[u8],
    ) -> Result<StoredFile, StoreError> {
        let mut file = self.begin(owner, name, media_type)?;
        file.write(content)?;
        file.finish()
    }

    /// Returns the file with this handle, if it belongs to the owner and has not expired.
    pub fn get(&self, owner: Owner, handle: &ResultHandle) -> Option<StoredFile> {
        self.remove_expired();
        self.0.index.lock().get(Some(owner), handle)
    }

    /// Opens the content of a file to read it. `None` if the owner has no file with this handle. Blocks.
    pub fn open(&self, owner: Owner, handle: &ResultHandle) -> Option<(StoredFile, File)> {
        let stored = self.get(owner, handle)?;
        Some((stored, self.0.directory.open(handle)?))
    }

    /// Opens the content of a file of any AI client, for the operator of the process. Blocks.
    pub fn open_for_operator(&self, handle: &ResultHandle) -> Option<(StoredFile, File)> {
        self.remove_expired();
        let stored = self.0.index.lock().get(None, handle)?;
        Some((stored, self.0.directory.open(handle)?))
    }

    /// Returns a file of any AI client with the path of its content, for the operator of the process.
    pub fn locate_for_operator(&self, handle: &ResultHandle) -> Option<(StoredFile, PathBuf)> {
        self.remove_expired();
        let stored = self.0.index.lock().get(None, handle)?;
        Some((stored, self.0.directory.content_path(handle)?))
    }

    /// Returns the files of all AI clients whose handles start with `prefix`, for the operator of the process.
    pub fn with_prefix(&self, prefix: &str) -> Vec<StoredFile> {
        self.remove_expired();
        self.0.index.lock().with_prefix(prefix)
    }

    /// Returns how long a file is stored, unless newer files need its space or its owner is gone.
    pub fn lifetime(&self) -> Duration {
        self.0.limits.lifetime
    }

    /// Returns the number of stored files and the sum of their bytes.
    pub fn usage(&self) -> (usize, u64) {
        self.remove_expired();
        self.0.index.lock().usage()
    }

    /// Removes all files of an owner.
    pub fn forget(&self, owner: Owner) {
        let removed = self.0.index.lock().remove_of(owner);
        self.0.directory.remove(&removed);
    }

    /// Removes all files of a process that serves AI clients. The files of commands stay.
    pub fn close(&self) {
        self.0.directory.close();
    }

    fn remove_expired(&self) {
        let expired = self.0.index.lock().remove_expired(self.0.limits.lifetime, SystemTime::now());
        self.0.directory.remove(&expired);
    }
}

impl FileWriter {
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    /// Adds bytes to the file. Removes other files if the limits require it. Blocks.
    ///
    /// # Errors
    /// If the file becomes too large, or cannot be written.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        let Store { limits, directory, index } = &*self.store.0;
        let (most, added) = (limits.bytes / FILE_SHARE, piece.len() as u64);
        if self.stored.bytes + added > most {
            return Err(StoreError::TooLarge { most });
        }
        let evicted = index.lock().reserve(self.owner, added, limits.bytes);
        self.stored.bytes += added;
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..missing]);
        directory.remove(&evicted);
        Ok(self.file.write_all(piece)?)
    }

    /// Makes the file available under its handle. Blocks.
    pub fn finish(mut self) -> Result<StoredFile, StoreError> {
        let Store { directory, index, .. } = &*self.store.0;
        self.stored.media_type = checked(std::mem::take(&mut self.stored.media_type), &self.head);
        directory.describe(&self.stored)?;
        let evicted = index.lock().insert(self.owner, self.stored.clone(), SystemTime::now());
        directory.remove(&evicted);
        self.is_finished = true;
        Ok(self.stored.clone())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            self.store.0.index.lock().release(self.owner, self.stored.bytes);
            self.store.0.directory.remove(std::slice::from_ref(&self.stored.handle));
        }
    }
}

#[cfg(test)]
mod tests;
