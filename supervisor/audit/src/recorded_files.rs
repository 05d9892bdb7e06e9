//! What the audit log has last recorded about each configuration file. A file that differs from it was changed by something
//! else than Lockhouse, such as an editor, and that is recorded when a process loads or reloads its configuration.
//!
//! The digests are in a file beside the keys of the log, under a lock on their directory. Whoever can change this file can
//! hide one such record, but not the change: the records of processes and reloads have the digests in force.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::files;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::{Audit, AuditError, Change, ChangeTarget, Channel, LocalUser, ProvenPresence, digest};

const FILE: &str = "audit-files.json";
/// Maximum number of bytes of the file with the digests.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of configuration files whose digests are kept. Files that do not exist any more make room.
/// Bound: the audit log.
const FILES_MAX: usize = 256;
/// How many times a process tries to lock the digests before it gives up, and after which time it tries again. Others hold
/// the lock only while they read a few files.
const LOCK_TRIES: u32 = 100;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// Maximum number of bytes of a configuration file of which a digest is made.
const CONFIGURATION_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A file with a part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredFile {
    pub target: ChangeTarget,
    pub path: PathBuf,
}

impl ConfiguredFile {
    /// Returns the SHA-256 of the file as it is now. `None` if there is none, or if it cannot be read.
    fn digest(&self) -> Option<String> {
        let text = files::read_following_links(&self.path, CONFIGURATION_BYTES_MAX).ok()??;
        Some(digest::sha256_hex(&text))
    }
}

/// The digests that were recorded last. `None` as a digest stands for a file that was absent.
struct RecordedFiles {
    path: PathBuf,
    digests: BTreeMap<PathBuf, Option<String>>,
    _lock: Flock<File>,
}

impl RecordedFiles {
    /// Locks and reads the digests. Returns `None` if another process holds the lock.
    fn lock(directory: &Path) -> io::Result<Option<Self>> {
        let lock = match Flock::lock(File::open(directory)?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EWOULDBLOCK | Errno::EINTR)) => return Ok(None),
            Err((_, error)) => return Err(error.into()),
        };
        let path = directory.join(FILE);
        // A damaged file is like none: every file is then seen for the first time.
        let digests = files::read_bounded(&path, FILE_BYTES_MAX)?;
        let digests = digests.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Some(Self { path, digests, _lock: lock }))
    }

    fn set(&mut self, path: &Path, digest: Option<String>) {
        if self.digests.len() >= FILES_MAX && !self.digests.contains_key(path) {
            self.digests.retain(|known, _| known.exists());
        }
        if self.digests.len() < FILES_MAX || self.digests.contains_key(path) {
            self.digests.insert(path.to_owned(), digest);
        }
    }

    fn save(&self) -> io::Result<()> {
        files::replace_for_service(&self.path, serde_json::to_string(&self.digests)?.as_bytes())
    }
}

impl Audit {
    /// Records each file that differs from what was recorded about it last. A file that is seen for the first time has no
    /// record. Another process that looks at the files at the same time records them.
    ///
    /// # Errors
    /// A record cannot be written.
    pub fn record_file_edits(&self, seen: &[ConfiguredFile]) -> Result<(), AuditError> {
        // Without the digests, the records of processes and reloads still have those in force.
        let unkept = |error: io::Error| {
            tracing::warn!(
                "edits of configuration files cannot be found, because {FILE} cannot be used: {error}"
            );
        };
        let mut recorded = match RecordedFiles::lock(&self.settings.keys) {
            Ok(Some(recorded)) => recorded,
            Ok(None) => return Ok(()),
            Err(error) => {
                unkept(error);
                return Ok(());
            }
        };
        let mut is_changed = false;
        for file in seen {
            is_changed |= self.record_edit(&mut recorded, file)?;
        }
        if is_changed && let Err(error) = recorded.save() {
            unkept(error);
        }
        Ok(())
    }

    /// Records the file if something else has changed it. Returns whether its digest has to be kept.
    fn record_edit(&self, recorded: &mut RecordedFiles, file: &ConfiguredFile) -> Result<bool, AuditError> {
        let now = file.digest();
        match recorded.digests.get(&file.path) {
            Some(before) if *before == now => return Ok(false),
            Some(before) => {
                let action = match (before, &now) {
                    (Some(_), Some(_)) => "edited",
                    (None, _) => "created",
                    (_, None) => "removed",
                };
                self.change(
                    Change {
                        target: file.target,
                        file: &file.path,
                        action,
                        through: Channel::File,
                        before: before.as_deref(),
                        after: now.as_deref(),
                        presence: None,
                        failed: None,
                    },
                    LocalUser::current(),
                )?;
            }
            None => {}
        }
        recorded.set(&file.path, now);
        Ok(true)
    }

    /// Records that a file is about to be changed. The change must be made only after success, and its end reported with
    /// [`PendingChange::finish`].
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn begin_change(
        self: &Arc<Self>,
        edit: Edit<'_>,
        by: LocalUser,
    ) -> Result<PendingChange, AuditError> {
        let Edit { target, path, action, through, text, presence } = edit;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = ConfiguredFile { target, path };
        // An edit of another program has a record of its own.
        self.record_file_edits(std::slice::from_ref(&file))?;
        let (before, after) = (file.digest(), text.map(digest::sha256_hex));
        let (audit, action) = (self.clone(), action.to_owned());
        let presence = presence.cloned();
        let pending = PendingChange { audit, file, before, after, action, through, presence, by };
        pending.record(None)?;
        Ok(pending)
    }

    /// Keeps the digest of a file that Lockhouse itself has changed.
    fn note_file(&self, file: &ConfiguredFile) -> io::Result<()> {
        let directory = &self.settings.keys;
        for _ in 0..LOCK_TRIES {
            if let Some(mut recorded) = RecordedFiles::lock(directory)? {
                recorded.set(&file.path, file.digest());
                return recorded.save();
            }
            std::thread::sleep(LOCK_AGAIN_AFTER);
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// A change of a file that Lockhouse makes.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    pub target: ChangeTarget,
    pub path: &'a Path,
    /// What is changed, such as `allow tickets.create`.
    pub action: &'a str,
    pub through: Channel,
    /// The text of the file after the change. `None` if the file is removed, or the text is not known yet.
    pub text: Option<&'a str>,
    /// How whoever makes it has proven that a person is there. `None` if no proof was required.
    pub presence: Option<&'a ProvenPresence>,
}

/// A change that was recorded, and is being made.
#[derive(Debug)]
#[must_use = "whether the change was made has to be recorded"]
pub struct PendingChange {
    audit: Arc<Audit>,
    file: ConfiguredFile,
    before: Option<String>,
    after: Option<String>,
    action: String,
    through: Channel,
    presence: Option<ProvenPresence>,
    by: LocalUser,
}

impl PendingChange {
    /// Notes the end of the change: `result` is what making it returned.
    ///
    /// # Errors
    /// That of `result`.
    pub fn finish<T, E: std::fmt::Display>(self, result: Result<T, E>) -> Result<T, E> {
        match &result {
            Ok(_) => self.done(),
            Err(error) => self.failed(&error.to_string()),
        }
        result
    }

    /// Notes that the change was made, so that the next load of the file does not take it for an edit of another program.
    pub fn done(self) {
        if let Err(error) = self.audit.note_file(&self.file) {
            let path = self.file.path.display();
            tracing::warn!("the change of {path} may be recorded once more, as an edit: {error}");
        }
    }

    /// Records that the change could not be made.
    pub fn failed(self, reason: &str) {
        if let Err(error) = self.record(Some(reason)) {
            tracing::error!("{error}");
        }
    }

    fn record(&self, failed: Option<&str>) -> Result<(), AuditError> {
        let Self { audit, file, before, after, action, through, presence, by } = self;
        let change = Change {
            target: file.target,
            file: &file.path,
            action,
            through: *through,
            before: before.as_deref(),
            after: after.as_deref(),
            presence: presence.as_ref(),
            failed,
        };
        audit.change(change, *by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_gone_make_room_for_new_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut recorded = RecordedFiles::lock(directory.path()).expect("a lock").expect("no other holder");
        for number in 0..3 * FILES_MAX {
            recorded.set(&directory.path().join(number.to_string()), None);
        }
        assert!(recorded.digests.len() <= FILES_MAX, "{}", recorded.digests.len());
        recorded.save().expect("written");
        let taken = RecordedFiles::lock(directory.path()).expect("a result");
        assert!(taken.is_none(), "one process at a time");
        let count = recorded.digests.len();
        drop(recorded);
        let read = RecordedFiles::lock(directory.path()).expect("a lock").expect("no other holder");
        assert_eq!(read.digests.len(), count);
    }
}
