//! Finds out whether requirements files have changed, by looking at them again and again.
//!
//! inotify is not used: its instances are limited for each user, who can use them up; and a watch follows neither a
//! directory that is created later, nor a file that is mounted.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_audit::digest;
use lockhouse_base::files::FileVersion;

/// A file that was changed at most this long before it was read may change again without a difference in its metadata:
/// the kernel's clock for files is coarse, and some file systems count in seconds.
const COARSE_CLOCK: Duration = Duration::from_secs(2);

/// Files that are watched, as they were before they were last read.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedFiles(Vec<WatchedFile>);

#[derive(Clone, Debug)]
struct WatchedFile {
    path: PathBuf,
    seen: FileState,
    /// The digest of the content, as long as the metadata alone does not show a change.
    digest: Option<String>,
}

/// What the file system tells about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    Absent,
    Unreadable(ErrorKind),
    Present(FileVersion),
}

impl WatchedFiles {
    /// Adds a file, which must be read after that.
    pub(super) fn add(&mut self, path: &Path) {
        let seen = FileState::of(path);
        let digest = if seen.is_recent() { content_digest(path) } else { None };
        self.0.push(WatchedFile { path: path.to_owned(), seen, digest });
    }

    /// Returns the state of each file now.
    pub(crate) fn look(&self) -> Vec<FileState> {
        self.0.iter().map(|file| FileState::of(&file.path)).collect()
    }

    /// Whether a file has changed. A file that has disappeared has not: what it said stays in force.
    pub(crate) fn have_changed(&mut self) -> bool {
        self.0.iter_mut().any(WatchedFile::has_changed)
    }

    /// Returns the files that existed and are absent now.
    pub(crate) fn missing(&self) -> Vec<&Path> {
        let is_missing = |file: &&WatchedFile| {
            file.seen != FileState::Absent && FileState::of(&file.path) == FileState::Absent
        };
        self.0.iter().filter(is_missing).map(|file| &*file.path).collect()
    }
}

impl WatchedFile {
    fn has_changed(&mut self) -> bool {
        let now = FileState::of(&self.path);
        if now == FileState::Absent {
            return false;
        }
        if now != self.seen {
            return true;
        }
        let Some(digest) = &self.digest else { return false };
        let is_same = content_digest(&self.path).as_ref() == Some(digest);
        if is_same && !now.is_recent() {
            self.digest = None;
        }
        !is_same
    }
}

impl FileState {
    fn of(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(found) => Self::Present(FileVersion::from(&found)),
            Err(error) if is_absent(&error) => Self::Absent,
            Err(error) => Self::Unreadable(error.kind()),
        }
    }

    /// Whether the file has changed only now, or in the future of the clock.
    fn is_recent(&self) -> bool {
        let Self::Present(version) = self else { return false };
        version.made_at().elapsed().ok().is_none_or(|elapsed| elapsed < COARSE_CLOCK)
    }
}

/// Whether an error says that there is no such file.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn content_digest(path: &Path) -> Option<String> {
    let source = lockhouse_base::text_files::read_source(path).ok()?;
    Some(digest::sha256_hex(&source.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen_but_not_that_the_file_disappears() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("requirements.toml");
        let watched = || {
            let mut watched = WatchedFiles::default();
            watched.add(&path);
            watched
        };
        let mut before = watched();
        assert!(!before.have_changed(), "it is still absent");
        std::fs::write(&path, "one").expect("written");
        assert!(before.have_changed(), "it was created");
        let mut before = watched();
        assert!(!before.have_changed(), "control");
        // The kernel's clock may show the same time for both.
        std::fs::write(&path, "two").expect("written");
        assert!(before.have_changed(), "other content of the same size");
        let mut before = watched();
        std::fs::rename(&path, folder.path().join("away")).expect("moved");
        assert!(!before.have_changed() && before.missing() == [path.as_path()], "it is hidden");
        std::fs::write(&path, "two").expect("written");
        assert!(before.have_changed() && before.missing().is_empty(), "another file with the same content");
        let mut before = watched();
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a directory");
        assert!(before.have_changed(), "a directory in its place");
    }
}
