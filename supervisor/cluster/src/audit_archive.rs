//! Reads the copies of the audit logs of all hosts, for an auditor.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lockhouse_base::files;

use crate::audit_part::{AuditPart, LogId};
use crate::settings::{HostName, StateConnection};
use crate::shared_state::{SharedState, Unavailable};
use crate::signed_lease::verify;
use crate::state_table::Table;

/// The name under which an auditor connects.
pub const AUDITOR: &str = "auditor";

/// Why the copies cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("{path} cannot be written: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// The copies of all hosts, which were written into a folder.
#[derive(Debug)]
pub struct AuditArchive {
    /// The folder of each log. One host has several if its state was lost.
    pub logs: BTreeMap<(HostName, LogId), ArchivedLog>,
    /// The hosts that are members of the cluster now.
    pub members: Vec<HostName>,
}

/// The copy of one log.
#[derive(Debug)]
pub struct ArchivedLog {
    pub folder: PathBuf,
    /// The files whose copies lack a part, or have one twice.
    pub broken: Vec<String>,
}

impl AuditArchive {
    /// Reads all copies, and writes them into an empty folder: `HOST/LOG/FILE`.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub async fn fetch(connection: &StateConnection, folder: &Path) -> Result<Self, ArchiveError> {
        let state = SharedState::connect_to_read(connection).await?;
        let mut archive = Self { logs: BTreeMap::new(), members: Vec::new() };
        state
            .for_each(Table::AuditCopies, |key, value| match AuditPart::of_key(key) {
                Some(part) => archive.add(folder, &part, value),
                None => Ok(()),
            })
            .await?;
        state
            .for_each(Table::Hosts, |key, value| {
                let is_member = verify(key, value).is_some_and(|lease| !lease.has_left);
                archive.members.extend(key.parse::<HostName>().ok().filter(|_| is_member));
                Ok::<_, ArchiveError>(())
            })
            .await?;
        archive.members.sort();
        Ok(archive)
    }

    fn add(&mut self, folder: &Path, part: &AuditPart, value: &[u8]) -> Result<(), ArchiveError> {
        let AuditPart { host, log, file, start, end } = part;
        let entry = self.logs.entry((host.clone(), log.clone())).or_insert_with(|| ArchivedLog {
            folder: folder.join(host.as_str()).join(log.to_string()),
            broken: Vec::new(),
        });
        let path = entry.folder.join(file);
        let length = path.symlink_metadata().map_or(0, |metadata| metadata.len());
        if length != *start || end - start != value.len() as u64 {
            entry.broken.push(file.clone());
            return Ok(());
        }
        let write = || {
            files::create_private_directory(&entry.folder)?;
            files::open_to_append(&path)?.write_all(value)
        };
        write().map_err(|source| ArchiveError::File { path: path.clone(), source })
    }
}
