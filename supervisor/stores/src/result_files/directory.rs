//! The directory of the stored files. Each file is named after its handle.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lockhouse_base::files;
use lockhouse_protocol::ResultHandle;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::StoredFile;

const CONTENT: &str = "content";
const FACTS: &str = "json";
/// Maximum size of the description of a file, in bytes.
const FACTS_BYTES_MAX: u64 = 4 * 1024;

/// Where files are stored.
#[derive(Debug)]
pub(super) enum Place {
    /// In a directory of this process below this one.
    Process(PathBuf),
    /// In this directory, which later processes read. Beside each file is its description.
    Shared(PathBuf),
}

#[derive(Debug)]
pub(super) struct Directory {
    /// `None` if nothing is stored.
    place: Option<Place>,
    /// The directory of this process, once it exists, with the open directory whose lock shows that the process lives.
    own: Mutex<Option<(PathBuf, File)>>,
}

/// The description of a file, for later processes.
#[derive(Serialize, Deserialize)]
struct Facts {
    name: String,
    mime_type: String,
    bytes: u64,
}

impl Directory {
    pub(super) fn new(place: Option<Place>) -> Self {
        Self { place, own: Mutex::default() }
    }

    /// Creates the file of a handle, for reading and writing. Returns `None` if nothing is stored.
    pub(super) fn create(&self, handle: &ResultHandle) -> io::Result<Option<File>> {
        let Some(place) = &self.place else { return Ok(None) };
        let directory = match place {
            Place::Shared(directory) => {
                files::create_private_directory(directory)?;
                directory.clone()
            }
            Place::Process(parent) => {
                let mut own = self.own.lock();
                let (path, lock) = match own.take() {
                    Some(existing) => existing,
                    None => create_for_process(parent)?,
                };
                own.insert((path, lock)).0.clone()
            }
        };
        files::open_regular_file(
            std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600),
            &directory.join(format!("{handle}.{CONTENT}")),
        )
        .map(Some)
    }

    pub(super) fn open(&self, handle: &ResultHandle) -> Option<File> {
        files::open_to_read(&self.path(handle, CONTENT)?).ok()
    }

    /// Returns the path of the content of a file.
    pub(super) fn content_path(&self, handle: &ResultHandle) -> Option<PathBuf> {
        self.path(handle, CONTENT)
    }

    /// Writes the description of a complete file, if later processes read it.
    pub(super) fn describe(&self, stored: &StoredFile) -> io::Result<()> {
        let Some(Place::Shared(directory)) = &self.place else { return Ok(()) };
        let StoredFile { handle, name, media_type, bytes } = stored.clone();
        let facts = serde_json::to_vec(&Facts { name, mime_type: media_type, bytes })?;
        files::replace(&directory.join(format!("{handle}.{FACTS}")), &facts)
    }

    /// Removes the files with these handles.
    pub(super) fn remove(&self, handles: &[ResultHandle]) {
        let paths = handles.iter().flat_map(|handle| [FACTS, CONTENT].map(|end| self.path(handle, end)));
        for path in paths.flatten() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Returns the files that earlier processes have stored, each with the time at which it was stored. Removes files
    /// that have no valid description and are older than an hour, because their writing was interrupted.
    pub(super) fn read_shared(&self) -> Vec<(StoredFile, SystemTime)> {
        let Some(Place::Shared(directory)) = &self.place else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            ResultHandle::new(name.strip_suffix(CONTENT)?.strip_suffix('.')?).ok()
        });
        let mut found = Vec::new();
        for handle in names {
            match self.read_facts(directory, &handle) {
                Some(stored) => found.push(stored),
                None if self.is_abandoned(directory, &handle) => self.remove(&[handle]),
                None => {}
            }
        }
        found
    }

    fn read_facts(&self, directory: &Path, handle: &ResultHandle) -> Option<(StoredFile, SystemTime)> {
        let text =
            files::read_bounded(&directory.join(format!("{handle}.{FACTS}")), FACTS_BYTES_MAX).ok()??;
        let Facts { name, mime_type, .. } = serde_json::from_str(&text).ok()?;
        let status = directory.join(format!("{handle}.{CONTENT}")).symlink_metadata().ok()?;
        let stored = StoredFile {
            handle: handle.clone(),
            // Another program may have changed the description.
            name: super::safe_name(&name),
            media_type: mime_type,
            bytes: status.len(),
        };
        Some((stored, status.modified().ok()?))
    }

    fn is_abandoned(&self, directory: &Path, handle: &ResultHandle) -> bool {
        let status = directory.join(format!("{handle}.{CONTENT}")).symlink_metadata();
        let age = status.and_then(|status| status.modified()).ok().and_then(|since| since.elapsed().ok());
        age.is_some_and(|age| age.as_secs() > 3_600)
    }

    /// Removes the directory of this process.
    pub(super) fn close(&self) {
        if let Some((path, _lock)) = self.own.lock().take() {
            let _ = std::fs::remove_dir_all(path);
        }
    }

    fn path(&self, handle: &ResultHandle, end: &str) -> Option<PathBuf> {
        // Handles contain no character that is special in paths.
        let name = format!("{handle}.{end}");
        match self.place.as_ref()? {
            Place::Shared(directory) => Some(directory.join(name)),
            Place::Process(_) => self.own.lock().as_ref().map(|(directory, _)| directory.join(name)),
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.close();
    }
}

/// Creates and locks a directory for this process, and removes those of processes that have ended. The lock of the
/// parent keeps other processes from removing a directory that is not locked yet.
fn create_for_process(parent: &Path) -> io::Result<(PathBuf, File)> {
    files::create_private_directory(parent)?;
    let guard = File::open(parent)?;
    guard.lock()?;
    for entry in std::fs::read_dir(parent)?.flatten() {
        let is_of_process = entry.file_name().to_str().is_some_and(|name| name.starts_with("process-"));
        if is_of_process && File::open(entry.path()).is_ok_and(|open| open.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let path = parent.join(format!("process-{}", uuid::Uuid::now_v7().simple()));
    files::create_private_directory(&path)?;
    let lock = File::open(&path)?;
    lock.lock()?;
    Ok((path, lock))
}
