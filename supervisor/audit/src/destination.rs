//! Where the records of a process go: into files that it writes, or to the audit sink.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use lockhouse_base::files;
use nix::unistd::{AccessFlags, access};
use parking_lot::Mutex;

use super::chain_writer::{Intervals, Writer};
use super::client_names;
use super::hash_chain::RecordBody;
use super::log_key;
use super::moment::Moment;
use super::program_store::ProgramStore;
use super::segment_index::{INDEX, Index};
use super::sink::{RequiredForwarding, SinkClient};
use super::{AuditError, AuditSettings};

/// Where the records of a process go.
#[derive(Debug)]
pub(super) enum Destination {
    /// Into files that this process writes.
    Files { writer: Box<Mutex<Writer>>, programs: ProgramStore },
    /// To the audit sink. Programs have a connection of their own, so that no record waits for one.
    Sink { records: Mutex<SinkClient>, programs: Mutex<SinkClient> },
}

impl Destination {
    /// Opens the destination that the settings name.
    ///
    /// # Errors
    /// [`AuditError`] if this process cannot write the files, or the key of the log is missing.
    pub(super) fn open(settings: &AuditSettings) -> Result<Self, AuditError> {
        if let Some(sink) = &settings.sink {
            let required = RequiredForwarding {
                destinations: settings.forward.clone(),
                within_s: settings.forward_within.map(|within| within.as_secs()),
            };
            let client = || SinkClient::new(sink.path().to_owned(), required.clone());
            let records = match settings.erasable_names {
                true => client().writing_ids(),
                false => client(),
            };
            return Ok(Self::Sink { records: records.into(), programs: client().into() });
        }
        let directory = settings.directory.clone();
        let is_new = !directory.exists();
        let usable = files::create_private_directory(&directory).and_then(|()| {
            if is_new {
                files::give_to_owner_of_directory(&files::open_directory(&directory)?, &directory)?;
            }
            Ok(access(&directory, AccessFlags::W_OK | AccessFlags::X_OK)?)
        });
        let to_error = |source| AuditError::Write { path: directory.clone(), source };
        usable.map_err(to_error)?;
        // The key is created or checked at the start, and not with the first call: people print it before that.
        if directory.join(INDEX).exists() {
            Index::open(&directory, &settings.keys).map_err(to_error)?;
        } else {
            log_key::create_first(&settings.keys, &directory)?;
        }
        let programs = ProgramStore::new(directory.clone());
        let mut writer = Writer::new(directory.clone(), settings.keys.clone(), Intervals::default());
        if settings.erasable_names {
            writer.write_ids();
        }
        Ok(Self::Files { writer: Box::new(writer.into()), programs })
    }

    pub(super) fn append(&self, body: &RecordBody) -> Result<(), AuditError> {
        match self {
            Self::Files { writer, .. } => {
                let mut writer = writer.lock();
                let appended = writer.append(Moment::now(), body);
                appended.map_err(|source| AuditError::Write { path: writer.path(), source })
            }
            Self::Sink { records, .. } => records.lock().append(body),
        }
    }

    /// Erases names of the records of this account.
    pub(super) fn erase_names(&self, names: &[String]) -> Result<(), AuditError> {
        match self {
            Self::Files { writer, .. } => {
                let directory = writer.lock().directory().to_owned();
                let erased = client_names::erase(&directory, nix::unistd::geteuid().as_raw(), names);
                erased.map_err(|source| AuditError::Write { path: directory, source })
            }
            Self::Sink { records, .. } => records.lock().erase_names(names),
        }
    }

    /// Returns whether a record could be written now. If the last write failed, tests this by writing a file.
    pub(super) fn is_writable(&self, directory: &Path) -> bool {
        let writer = match self {
            Self::Files { writer, .. } => writer,
            Self::Sink { records, .. } => return records.lock().is_reachable(),
        };
        if access(directory, AccessFlags::W_OK | AccessFlags::X_OK).is_err() || is_full(directory) {
            return false;
        }
        !writer.lock().has_gap() || probe(directory).is_ok()
    }
}

/// Syncs stored programs to the disk, and logs an error.
pub(super) fn sync_programs(programs: &ProgramStore) {
    if let Err(error) = programs.sync() {
        tracing::error!("cannot sync stored programs of the audit log to disk: {error}");
    }
}

/// Size in bytes of the file with which `probe` tests writing: about the size of the audit record of a large call.
const PROBE_BYTES: usize = 16 * 1024;

/// Whether the file system of a directory says that it has no room for a large audit record.
fn is_full(directory: &Path) -> bool {
    let Ok(space) = nix::sys::statvfs::statvfs(directory) else { return false };
    let is_root = nix::unistd::geteuid().is_root();
    // Some blocks may be reserved for root.
    let free = if is_root { space.blocks_free() } else { space.blocks_available() };
    // A file system without a fixed size has no number of blocks.
    space.blocks() > 0 && free.saturating_mul(space.fragment_size()) < PROBE_BYTES as u64
}

/// Tests whether a large audit record could be written: writes a file of that size to the directory and removes it.
fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".probe-{}", std::process::id()));
    // `create_new` below follows no link and overwrites no file, whatever was left at this path.
    let _ = std::fs::remove_file(&path);
    let opened = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
    let written = opened.and_then(|mut file| file.write_all(&[b' '; PROBE_BYTES]));
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}
