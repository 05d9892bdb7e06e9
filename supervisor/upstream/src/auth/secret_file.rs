//! A file with a secret, which only the account of Lockhouse can read. That of a user of the service is encrypted as well.

use std::fs::{DirBuilder, File};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_base::files::{self, FileVersion};
use lockhouse_base::sealing_key::SealingKey;
use nix::fcntl::{Flock, FlockArg};

/// Maximum size of a file with a secret, in bytes.
/// Bound: upstream servers.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How long to wait for the lock of such a file, which another process may hold while it renews a token.
/// Bound: upstream servers.
const LOCK_TIMEOUT: Duration = Duration::from_secs(45);
/// Interval at which this process tries to lock a file that another process has locked.
const LOCK_EVERY: Duration = Duration::from_millis(50);

/// Why a secret for an upstream server, such as an OAuth token, cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("no place to keep tokens: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoPlace,
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} holds tokens and is not used: {reason}; {advice}")]
    Exposed { path: PathBuf, reason: &'static str, advice: &'static str },
    #[error("{path} is damaged; log in again")]
    Damaged { path: PathBuf },
    #[error("{path} cannot be decrypted: it was encrypted with another key, or is damaged; log in again")]
    Undecipherable { path: PathBuf },
    #[error("another process has held {path} for too long")]
    Locked { path: PathBuf },
}

/// The place of a secret.
#[derive(Clone, Debug)]
pub(crate) struct SecretFile {
    path: PathBuf,
    /// The key that encrypts the content. `None` for secrets of the service itself, which are not encrypted.
    key: Option<SealingKey>,
}

impl SecretFile {
    pub(super) fn plain(path: PathBuf) -> Self {
        Self { path, key: None }
    }

    pub(crate) fn encrypted(path: PathBuf, key: SealingKey) -> Self {
        Self { path, key: Some(key) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version of the secret, which changes with it. `None` if there is no secret.
    pub(crate) fn version(&self) -> Option<FileVersion> {
        FileVersion::of(&self.path)
    }

    /// Returns the secret. `None` if there is none.
    pub(crate) fn read(&self) -> Result<Option<String>, SecretFileError> {
        let file = match files::open_to_read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        self.check(&self.path, &file.metadata().map_err(|error| self.failed(error))?)?;
        let mut content = Vec::new();
        let read = file.take(FILE_BYTES_MAX).read_to_end(&mut content);
        read.map_err(|error| self.failed(error))?;
        let content = match &self.key {
            None => content,
            Some(key) => key
                .decrypt(&self.context(), content)
                .ok_or_else(|| SecretFileError::Undecipherable { path: self.path.clone() })?,
        };
        String::from_utf8(content).map(Some).map_err(|_| self.damaged())
    }

    /// Replaces the secret atomically.
    pub(crate) fn write(&self, secret: &str) -> Result<(), SecretFileError> {
        self.make_directory()?;
        let content = match &self.key {
            None => secret.as_bytes().to_vec(),
            Some(key) => key
                .encrypt(&self.context(), secret.as_bytes())
                .ok_or_else(|| self.failed(Error::other("the encryption failed")))?,
        };
        files::replace_durably(&self.path, &content).map_err(|error| self.failed(error))
    }

    /// Deletes the secret. Returns whether there was one.
    pub(crate) fn delete(&self) -> Result<bool, SecretFileError> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Acquires the exclusive lock for the file. The lock is held until the returned value is dropped. Waits at most
    /// `LOCK_TIMEOUT`.
    pub(super) async fn lock(&self) -> Result<Flock<File>, SecretFileError> {
        self.make_directory()?;
        let path = self.path.with_extension("lock");
        let mut file = files::open_to_append(&path).map_err(|error| self.failed(error))?;
        let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((file, nix::errno::Errno::EWOULDBLOCK)) => file,
                Err((_, error)) => return Err(self.failed(error.into())),
            };
            if tokio::time::Instant::now() >= deadline {
                return Err(SecretFileError::Locked { path });
            }
            tokio::time::sleep(LOCK_EVERY).await;
        }
    }

    /// Returns whose secret this is and for what: the last two parts of the path. A file that was moved to the place of another one
    /// cannot be decrypted.
    fn context(&self) -> Vec<u8> {
        let parts: Vec<_> = self.path.iter().rev().take(2).map(|part| part.as_encoded_bytes()).collect();
        parts.join(&0)
    }

    fn make_directory(&self) -> Result<(), SecretFileError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| self.failed(error))?;
        let metadata = std::fs::symlink_metadata(directory).map_err(|error| self.failed(error))?;
        self.check(directory, &metadata)
    }

    /// Checks that `path`, which is the file or its directory, belongs to this account and is not accessible to other ones.
    fn check(&self, path: &Path, metadata: &std::fs::Metadata) -> Result<(), SecretFileError> {
        let exposed =
            |reason, advice| Err(SecretFileError::Exposed { path: path.to_owned(), reason, advice });
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return exposed("it belongs to another user", "remove it and log in again");
        }
        if metadata.mode() & 0o077 != 0 {
            return exposed("others than its owner have access to it", "take that away with chmod go=");
        }
        Ok(())
    }

    pub(super) fn damaged(&self) -> SecretFileError {
        SecretFileError::Damaged { path: self.path.clone() }
    }

    pub(super) fn failed(&self, source: Error) -> SecretFileError {
        SecretFileError::Io { path: self.path.clone(), source }
    }
}
