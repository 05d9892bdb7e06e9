//! Copies the audit log of this host to the shared state, where no host can change or remove a copy. One with the key of an auditor reads
//! them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use lockhouse_base::audit_files::{INDEX, INDEX_LINE_BYTES_MAX};
use lockhouse_base::files;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use crate::audit_part::{AuditPart, LogId, segment_names};
use crate::membership::Membership;
use crate::settings::HostName;
use crate::shared_state::{SharedState, Unavailable};
use crate::state_table::Table;

/// Interval at which a host copies what was added to its log. NATS has each part in its index, so parts must not be too small.
const INTERVAL: Duration = Duration::from_secs(3);
/// Maximum time for what was recorded last, when the process ends.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum length of one part, in bytes.
/// Bound: hosts of a cluster.
const PART_BYTES_MAX: u64 = 512 * 1024;

/// Why the log is not copied, as a clause.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
    #[error("{path} cannot be read: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} is shorter than its copy: it was truncated or replaced")]
    Shorter(PathBuf),
    #[error(
        "the copies of this log end differently: another log was copied under the name of this host, with the same beginning"
    )]
    Different,
}

/// The copying of the audit log of this host.
#[derive(Debug)]
pub struct AuditCopies {
    state: SharedState,
    host: HostName,
    directory: PathBuf,
    known: tokio::sync::Mutex<Known>,
    /// Why the last attempt failed. `None` if it succeeded.
    failure: Mutex<Option<String>>,
}

/// The log whose copies are known, and the length of the copy of each file.
type Known = Option<(LogId, HashMap<String, u64>)>;

impl AuditCopies {
    /// Returns the copying of the log in this directory. `None` if the configuration asks for no copies.
    pub fn new(membership: &Membership, directory: PathBuf) -> Option<Self> {
        let (state, host) = (membership.state().clone(), membership.name().clone());
        let (known, failure) = (tokio::sync::Mutex::default(), Mutex::default());
        membership.copies_audit().then_some(Self { state, host, directory, known, failure })
    }

    /// Returns why the last attempt failed. `None` if it succeeded.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Copies what is added to the log, until it is dropped.
    pub async fn keep(&self) -> Infallible {
        loop {
            self.try_copy().await;
            sleep(INTERVAL).await;
        }
    }

    /// Copies what was recorded last, at the end of this process.
    pub async fn finish(&self) {
        if timeout(FINISH_TIMEOUT, self.try_copy()).await.is_err() {
            tracing::error!("the end of the audit log is not copied: NATS did not answer in time");
        }
    }

    async fn try_copy(&self) {
        let failure = self.copy().await.err().map(|error| error.to_string());
        let before = std::mem::replace(&mut *self.failure.lock(), failure.clone());
        if let Some(failure) = failure.filter(|failure| before.as_ref() != Some(failure)) {
            tracing::error!("the audit log is not copied: {failure}");
        }
    }

    async fn copy(&self) -> Result<(), CopyError> {
        let Some(log) = self.log()? else { return Ok(()) };
        let mut known = self.known.lock().await;
        let mut copied = match known.take() {
            Some((known, copied)) if known == log => copied,
            _ => self.copied(&log).await?,
        };
        // The copy of the index comes last, and names nothing that has no copy.
        let index = self.length(INDEX)?;
        let names = segment_names(&self.directory);
        let names = names.map_err(|source| CopyError::File { path: self.directory.clone(), source })?;
        let mut result = Ok(());
        for (name, until) in names.iter().map(|name| (name.as_str(), None)).chain([(INDEX, Some(index))]) {
            match self.copy_file(&log, name, until, &mut copied).await {
                // What was copied is read again.
                Err(CopyError::Unavailable(error)) => return Err(error.into()),
                copied => result = result.and(copied),
            }
        }
        *known = Some((log, copied));
        result
    }

    /// Returns the id of the log. `None` if nothing was recorded yet.
    fn log(&self) -> Result<Option<LogId>, CopyError> {
        let path = self.path(INDEX);
        let file = match files::open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CopyError::File { path, source }),
        };
        let mut line = Vec::new();
        let read = BufReader::new(file.take(INDEX_LINE_BYTES_MAX)).read_until(b'\n', &mut line);
        read.map_err(|source| CopyError::File { path, source })?;
        Ok(line.ends_with(b"\n").then(|| LogId::of_first_line(&line)))
    }

    /// Returns the length of the copy of each file of a log.
    async fn copied(&self, log: &LogId) -> Result<HashMap<String, u64>, Unavailable> {
        let mut copied = HashMap::new();
        for key in self.state.keys(Table::AuditCopies, &format!("{}.{log}.", self.host)).await? {
            let Some(part) = AuditPart::of_key(&key) else { continue };
            let length: &mut u64 = copied.entry(part.file).or_default();
            *length = part.end.max(*length);
        }
        Ok(copied)
    }

    async fn copy_file(
        &self,
        log: &LogId,
        name: &str,
        until: Option<u64>,
        copied: &mut HashMap<String, u64>,
    ) -> Result<(), CopyError> {
        let length = self.length(name)?;
        loop {
            let start = copied.get(name).copied().unwrap_or_default();
            if length < start {
                return Err(CopyError::Shorter(self.path(name)));
            }
            let new = until.unwrap_or(length).saturating_sub(start);
            let part = if new > 0 { self.read(name, start, new)? } else { Bytes::new() };
            if part.is_empty() {
                return Ok(());
            }
            let end = start + part.len() as u64;
            let (host, log, file) = (self.host.clone(), log.clone(), name.to_owned());
            let key = AuditPart { host, log, file, start, end }.key();
            if self.state.create(Table::AuditCopies, &key, part).await?.is_none() {
                return Err(CopyError::Different);
            }
            copied.insert(name.to_owned(), end);
        }
    }

    /// Reads the next part of a file, of at most `max` bytes: complete lines, unless one line is longer.
    fn read(&self, name: &str, start: u64, max: u64) -> Result<Bytes, CopyError> {
        let read = || {
            let mut file: File = files::open_to_read(&self.path(name))?;
            file.seek(SeekFrom::Start(start))?;
            let mut part = Vec::new();
            file.take(max.min(PART_BYTES_MAX)).read_to_end(&mut part)?;
            if let Some(end) = part.iter().rposition(|byte| *byte == b'\n') {
                part.truncate(end + 1);
            } else if (part.len() as u64) < PART_BYTES_MAX {
                // The line is being written.
                part.clear();
            }
            Ok(part.into())
        };
        read().map_err(|source| CopyError::File { path: self.path(name), source })
    }

    fn length(&self, name: &str) -> Result<u64, CopyError> {
        let path = self.path(name);
        match path.symlink_metadata() {
            Ok(metadata) => Ok(metadata.len()),
            Err(source) => Err(CopyError::File { path, source }),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}
