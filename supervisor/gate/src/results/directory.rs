//! Results in files, one each, for the next process of the same user. Several processes may use them at the same time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lockhouse_base::files;
use lockhouse_protocol::ResultHandle;

use super::{Bounds, COUNT_MAX};

const ENDING: &str = "json";

#[derive(Debug)]
pub(super) struct Directory(PathBuf);

struct File {
    path: PathBuf,
    bytes: u64,
    since: SystemTime,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn keep(
        &self,
        handle: &ResultHandle,
        json: &str,
        bounds: &Bounds,
        now: SystemTime,
    ) -> io::Result<()> {
        self.make_room(json.len() as u64, bounds, now);
        files::replace(&self.path(handle), json.as_bytes())
    }

    pub(super) fn get(&self, handle: &ResultHandle, bounds: &Bounds, now: SystemTime) -> Option<Arc<str>> {
        let path = self.path(handle);
        let since = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
        if is_over(since, bounds, now) {
            return None;
        }
        let text = files::read_bounded(&path, bounds.bytes)
            .inspect_err(|error| tracing::warn!("{error}"))
            .ok()??;
        // Somebody may have changed the file, and everything that reads it counts on JSON.
        serde_json::from_str::<&serde_json::value::RawValue>(&text).ok()?;
        Some(text.into())
    }

    /// Removes what is over, then the oldest until there is room.
    pub(super) fn make_room(&self, bytes: u64, bounds: &Bounds, now: SystemTime) {
        let mut files = self.files();
        files.sort_by_key(|file| std::cmp::Reverse(file.since));
        let (mut used, mut count) = (bytes, 1);
        for file in files {
            (used, count) = (used + file.bytes, count + 1);
            if count > COUNT_MAX || used > bounds.bytes || is_over(file.since, bounds, now) {
                let _ = std::fs::remove_file(file.path);
            }
        }
    }

    fn files(&self) -> Vec<File> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let file = |entry: std::fs::DirEntry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(File { path: entry.path(), bytes: metadata.len(), since: metadata.modified().ok()? })
        };
        entries.flatten().filter_map(file).collect()
    }

    fn path(&self, handle: &ResultHandle) -> PathBuf {
        // A handle has no character that means anything in a path.
        self.0.join(format!("{handle}.{ENDING}"))
    }
}

/// A clock that was set back makes nothing last for ever.
fn is_over(since: SystemTime, bounds: &Bounds, now: SystemTime) -> bool {
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

    const BOUNDS: Bounds = Bounds { bytes: 100, lifetime: Duration::from_secs(60) };

    fn handle(name: &str) -> ResultHandle {
        ResultHandle::new(name).expect("a handle")
    }

    #[test]
    fn what_is_kept_is_private_and_goes_when_its_time_is_over() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(below.path().join("results"));
        directory.keep(&handle("a"), "[1]", &BOUNDS, SystemTime::now()).expect("a file");
        let mode = |path: PathBuf| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(directory.0.clone()), mode(directory.path(&handle("a")))), (0o700, 0o600));
        let at =
            |seconds| directory.get(&handle("a"), &BOUNDS, SystemTime::now() + Duration::from_secs(seconds));
        assert_eq!(at(0).as_deref(), Some("[1]"));
        assert_eq!(at(61), None);
        directory.make_room(0, &BOUNDS, SystemTime::now() + Duration::from_secs(61));
        assert_eq!(directory.files().len(), 0);
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(below.path().join("results"));
        let before = SystemTime::now() - Duration::from_secs(30);
        for (age, name) in ["a", "b", "c"].into_iter().enumerate() {
            directory.keep(&handle(name), &"1".repeat(30), &BOUNDS, SystemTime::now()).expect("a file");
            let file =
                std::fs::File::options().write(true).open(directory.path(&handle(name))).expect("a file");
            file.set_modified(before + Duration::from_secs(age as u64)).expect("a time");
        }
        directory.keep(&handle("d"), &"1".repeat(30), &BOUNDS, SystemTime::now()).expect("a file");
        let is_there = |name| directory.get(&handle(name), &BOUNDS, SystemTime::now()).is_some();
        assert_eq!(["a", "b", "c", "d"].map(is_there), [false, true, true, true]);
    }

    #[test]
    fn what_is_no_json_is_no_result() {
        let below = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(below.path().to_owned());
        std::fs::write(directory.path(&handle("a")), "[1").expect("a file");
        assert_eq!(directory.get(&handle("a"), &BOUNDS, SystemTime::now()), None);
    }
}
