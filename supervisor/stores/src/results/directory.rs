//! Stores each result in a file of its own, which later processes of the same Unix user can read. Several
//! processes may use the directory at the same time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lockhouse_base::files;
use lockhouse_messages::ResultListing;
use lockhouse_protocol::ResultHandle;

use super::{COUNT_MAX, ResultLimits, listing};

/// The extension of the files with results.
const FILE_EXTENSION: &str = "json";

#[derive(Debug)]
pub(super) struct DirectoryStore(PathBuf);

struct File {
    path: PathBuf,
    bytes: u64,
    /// When the file of the result was last modified.
    since: SystemTime,
}

impl File {
    /// Returns the handle of the result in this file; `None` if the file contains no result according to its name.
    fn handle(&self) -> Option<ResultHandle> {
        let name = self.path.file_name()?.to_str()?.strip_suffix(FILE_EXTENSION)?.strip_suffix('.')?;
        ResultHandle::new(name).ok()
    }
}

impl DirectoryStore {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Writes a result to a file. Before that, removes expired results, and the oldest ones if the limits require
    /// it.
    pub(super) fn store(
        &self,
        handle: &ResultHandle,
        json: &str,
        bounds: &ResultLimits,
        now: SystemTime,
    ) -> io::Result<()> {
        self.make_room(Some(json.len() as u64), bounds, now);
        files::replace(&self.path(handle), json.as_bytes())
    }

    /// Returns the result with this handle as JSON. `None` if there is none, it has expired, or its file is not valid
    /// JSON.
    pub(super) fn get(
        &self,
        handle: &ResultHandle,
        bounds: &ResultLimits,
        now: SystemTime,
    ) -> Option<Arc<str>> {
        let path = self.path(handle);
        let since = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
        if is_expired(since, bounds, now) {
            return None;
        }
        let text = files::read_bounded(&path, bounds.bytes)
            .inspect_err(|error| tracing::warn!("{error}"))
            .ok()??;
        // Another program may have modified the file, and readers of results require valid JSON.
        serde_json::from_str::<&serde_json::value::RawValue>(&text).ok()?;
        Some(text.into())
    }

    /// Lists the results that have not expired.
    pub(super) fn list(&self, bounds: &ResultLimits, now: SystemTime) -> Vec<ResultListing> {
        let current = self.files().into_iter().filter(|file| !is_expired(file.since, bounds, now));
        let listing = |file: File| {
            let age = now.duration_since(file.since).unwrap_or_default();
            Some(listing(&file.handle()?, "value", file.bytes, age, bounds))
        };
        current.filter_map(listing).collect()
    }

    /// Returns the handles of the results that have not expired and whose handles start with `prefix`, sorted by handle.
    pub(super) fn handles(&self, prefix: &str, bounds: &ResultLimits, now: SystemTime) -> Vec<ResultHandle> {
        let current = self.files().into_iter().filter(|file| !is_expired(file.since, bounds, now));
        let handle = |file: File| file.handle().filter(|handle| handle.as_str().starts_with(prefix));
        let mut handles: Vec<ResultHandle> = current.filter_map(handle).collect();
        handles.sort_unstable();
        handles
    }

    /// Removes expired results, and then the oldest ones until the limits hold: with a new result of this many bytes,
    /// or without a new one.
    pub(super) fn make_room(&self, new: Option<u64>, bounds: &ResultLimits, now: SystemTime) {
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.since));
        let (mut used, mut count) = (new.unwrap_or(0), usize::from(new.is_some()));
        for file in files {
            (used, count) = (used + file.bytes, count + 1);
            if count > COUNT_MAX || used > bounds.bytes || is_expired(file.since, bounds, now) {
                let _ = std::fs::remove_file(file.path);
            }
        }
    }

    /// Returns all files in the directory of results.
    fn files(&self) -> Vec<File> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let file = |entry: std::fs::DirEntry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(File { path: entry.path(), bytes: metadata.len(), since: metadata.modified().ok()? })
        };
        entries.flatten().filter_map(file).collect()
    }

    fn path(&self, handle: &ResultHandle) -> PathBuf {
        // Handles contain no character that is special in paths.
        self.0.join(format!("{handle}.{FILE_EXTENSION}"))
    }
}

/// Whether a result has expired. If the clock was set back and the file time is in the future, the difference
/// counts as the age, so that the result does not stay forever.
fn is_expired(since: SystemTime, bounds: &ResultLimits, now: SystemTime) -> bool {
    match now.duration_since(since) {
        Ok(age) => age >= bounds.lifetime,
        Err(ahead) => ahead.duration() >= bounds.lifetime,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    const LIMITS: ResultLimits = ResultLimits { bytes: 100, lifetime: Duration::from_secs(60) };

    fn handle(name: &str) -> ResultHandle {
        ResultHandle::new(name).expect("a handle")
    }

    #[test]
    fn result_files_are_private_and_expire() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = DirectoryStore::new(below.path().join("results"));
        directory.store(&handle("a"), "[1]", &LIMITS, SystemTime::now()).expect("a file");
        let mode = |path: PathBuf| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(directory.0.clone()), mode(directory.path(&handle("a")))), (0o700, 0o600));
        let at =
            |seconds| directory.get(&handle("a"), &LIMITS, SystemTime::now() + Duration::from_secs(seconds));
        assert_eq!(at(0).as_deref(), Some("[1]"));
        assert_eq!(at(61), None);
        directory.make_room(None, &LIMITS, SystemTime::now() + Duration::from_secs(61));
        assert_eq!(directory.files().len(), 0);
    }

    #[test]
    fn the_oldest_files_are_evicted_first() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = DirectoryStore::new(below.path().join("results"));
        let before = SystemTime::now() - Duration::from_secs(30);
        for (age, name) in ["a", "b", "c"].into_iter().enumerate() {
            directory.store(&handle(name), &"1".repeat(30), &LIMITS, SystemTime::now()).expect("a file");
            let file =
                std::fs::File::options().write(true).open(directory.path(&handle(name))).expect("a file");
            file.set_modified(before + Duration::from_secs(age as u64)).expect("a time");
        }
        directory.store(&handle("d"), &"1".repeat(30), &LIMITS, SystemTime::now()).expect("a file");
        let is_there = |name| directory.get(&handle(name), &LIMITS, SystemTime::now()).is_some();
        assert_eq!(["a", "b", "c", "d"].map(is_there), [false, true, true, true]);
    }

    #[test]
    fn the_maximum_number_of_results_is_kept_until_a_new_one_needs_space() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = DirectoryStore::new(below.path().to_owned());
        for number in 0..COUNT_MAX {
            std::fs::write(directory.path(&handle(&number.to_string())), "1").expect("a file");
        }
        let limits = ResultLimits { bytes: 10_000, ..LIMITS };
        directory.make_room(None, &limits, SystemTime::now());
        assert_eq!(directory.files().len(), COUNT_MAX);
        directory.make_room(Some(1), &limits, SystemTime::now());
        assert_eq!(directory.files().len(), COUNT_MAX - 1);
    }

    #[test]
    fn handles_are_found_by_prefix_until_they_expire() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = DirectoryStore::new(below.path().to_owned());
        for name in ["ab2", "ab1", "b"] {
            directory.store(&handle(name), "1", &LIMITS, SystemTime::now()).expect("a file");
        }
        std::fs::write(below.path().join("ab3.txt"), "1").expect("a file");
        let at = |prefix, seconds| {
            directory.handles(prefix, &LIMITS, SystemTime::now() + Duration::from_secs(seconds))
        };
        assert_eq!(at("ab", 0), [handle("ab1"), handle("ab2")]);
        assert_eq!((at("", 0).len(), at("c", 0).len(), at("", 61).len()), (3, 0, 0));
    }

    #[test]
    fn a_file_that_is_not_json_is_no_result() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = DirectoryStore::new(below.path().to_owned());
        std::fs::write(directory.path(&handle("a")), "[1").expect("a file");
        assert_eq!(directory.get(&handle("a"), &LIMITS, SystemTime::now()), None);
    }
}
