//! The files in which the state of one destination is stored, below `audit-forward` in the state directory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use lockhouse_base::files;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Destination, ForwardSettings};

/// Name of the directory in the state directory.
const DIRECTORY: &str = "audit-forward";
/// Maximum size of the file with the last error, in bytes.
const STATUS_BYTES_MAX: u64 = 16 * 1024;

/// The paths of the files of one destination and one audit log.
#[derive(Clone, Debug)]
pub(crate) struct StateFiles {
    directory: PathBuf,
    name: String,
}

/// The right to forward to a destination, which one process has. The kernel releases it when the process ends.
#[derive(Debug)]
pub(crate) struct ForwardLock(#[expect(dead_code, reason = "held, not used")] Flock<File>);

/// What the forwarding process says about itself, for `lockhouse audit forward`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) pid: u32,
    /// When records were delivered last, as RFC 3339.
    pub(crate) delivered: Option<String>,
    /// Why nothing can be delivered. `None` if the last attempt succeeded.
    pub(crate) error: Option<String>,
    /// Since when nothing can be delivered, as RFC 3339.
    pub(crate) failing_since: Option<String>,
}

impl StateFiles {
    pub(crate) fn new(settings: &ForwardSettings, destination: &Destination) -> Self {
        let mut hash = Sha256::new();
        hash.update(destination.to_string());
        hash.update([0]);
        hash.update(settings.log.as_os_str().as_encoded_bytes());
        let name = HEXLOWER.encode(&hash.finalize()[..8]);
        Self { directory: settings.state.join(DIRECTORY), name }
    }

    pub(crate) fn cursor(&self) -> PathBuf {
        self.path("cursor")
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name))
    }

    /// Takes the lock. Returns `None` if another process has it.
    pub(crate) fn lock(&self) -> io::Result<Option<ForwardLock>> {
        files::create_private_directory(&self.directory)?;
        let path = self.path("lock");
        let file = files::open_to_append(&path)?;
        files::give_to_owner_of_directory(&file, &path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(ForwardLock(lock))),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error.into()),
        }
    }

    /// Stores the status. It is for people only, so a failure is not reported.
    pub(crate) fn write_status(&self, status: &Status) {
        let text = serde_json::to_vec(status).unwrap_or_default();
        let _ = files::replace(&self.path("status"), &text);
    }

    /// Reads the status. A file that is missing or not valid has the default.
    pub(crate) fn read_status(&self) -> Status {
        let text = read(&self.path("status"), STATUS_BYTES_MAX);
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

fn read(path: &Path, bytes_max: u64) -> Option<String> {
    files::read_bounded(path, bytes_max).ok().flatten()
}
