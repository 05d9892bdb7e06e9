//! The key that signs the next line of the index. Each line names its successor, which then replaces it in its file, so
//! that no file has a key that signed a line.
//!
//! All functions of this module that change files need the exclusive lock of the index.
//!
//! The successor is on the disk (`audit-key.next`) before the line that names it, and gets the name `audit-key` after
//! that. If the process ends between two of these steps, the last line of the index tells the next process which of the
//! two files has the key.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lockhouse_base::files;

use super::hash_chain::hash;
use super::signing::{KeyError, PublicKey, SigningKey};
use data_encoding::HEXLOWER;

/// Name of the file with the key, as PKCS#8. If a second log has its keys in the same directory, the name of its file
/// continues with a hash of the path of that log.
const KEY_FILE: &str = "audit-key";
/// Name of the file with the path of the log that uses [`KEY_FILE`].
const OWNER_FILE: &str = "audit-log-path";
/// Ending of the name of a file with a key that no line of the index may name yet.
const NEXT: &str = ".next";
/// Maximum number of characters of the hash in the name of a key's file.
const PATH_HASH_CHARS: usize = 16;
/// Maximum number of files with keys that are read in one directory.
/// Bound: the audit log.
const KEY_FILES_MAX: usize = 64;
/// Maximum length of the path of a log, in bytes.
const PATH_BYTES_MAX: u64 = 4096;

/// What the index says about the key of its next line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectedKey {
    /// The index has no line: the log has any key, which is created if there is none.
    Any,
    /// The lines of the index come from a version that has one key for all of them.
    Existing,
    /// The last line that names its successor names this key.
    Next(PublicKey),
}

/// The key of the next line of an index.
#[derive(Debug)]
pub(super) struct LogKey {
    /// Path of the file with the key.
    path: PathBuf,
    key: SigningKey,
    /// Whether a line of the index names the key, and its file could not be renamed yet.
    is_next: bool,
}

impl LogKey {
    /// Loads the key of the log in `log` from a file in `directory`, and completes what a process that ended left.
    ///
    /// # Errors
    /// [`KeyError::Lost`] if no file has the expected key.
    pub(super) fn load(directory: &Path, log: &Path, expected: &ExpectedKey) -> Result<Self, KeyError> {
        let path = match expected {
            ExpectedKey::Next(key) => match find(directory, key)? {
                Some(path) => path,
                None => return Err(lost(directory, &key.to_hex())),
            },
            ExpectedKey::Any | ExpectedKey::Existing => own_file(directory, log)?,
        };
        let is_next = path.as_os_str().as_bytes().ends_with(NEXT.as_bytes());
        let mut key = match SigningKey::load(&path)? {
            Some(key) => Self { path, key, is_next },
            None if *expected == ExpectedKey::Any => Self::create(path)?,
            None => return Err(lost(directory, "that of its last line")),
        };
        key.finish().map_err(|source| KeyError::File { path: key.path.clone(), source })?;
        // A successor that no line names belongs to a line that was not written.
        let _ = std::fs::remove_file(with_next(&key.path));
        Ok(key)
    }

    /// Begins a new key, because the present one is lost. The key is not in a file before [`Self::prepare`].
    pub(super) fn begin_again(directory: &Path, log: &Path) -> Result<Self, KeyError> {
        let path = own_file(directory, log)?;
        let key = SigningKey::generate().map_err(|source| KeyError::File { path: path.clone(), source })?;
        Ok(Self { path, key, is_next: false })
    }

    fn create(path: PathBuf) -> Result<Self, KeyError> {
        let make = || files::create_durably(&path, &SigningKey::generate()?.to_pkcs8()?);
        make().map_err(|source| KeyError::File { path: path.clone(), source })?;
        match SigningKey::load(&path)? {
            Some(key) => Ok(Self { path, key, is_next: false }),
            None => Err(KeyError::InvalidKey(path)),
        }
    }

    pub(super) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Writes `next`, the key after this one, to the disk. A line of the index may name it after that.
    pub(super) fn prepare(&mut self, next: &SigningKey) -> io::Result<()> {
        self.finish()?;
        files::replace_for_service(&with_next(&self.path), &next.to_pkcs8()?)?;
        File::open(self.path.parent().ok_or(io::ErrorKind::InvalidInput)?)?.sync_all()
    }

    /// Replaces this key by `next`, which a line of the index names now. If the file cannot be renamed, the next use of
    /// the key tries it again.
    pub(super) fn advance(&mut self, next: SigningKey) {
        (self.path, self.key, self.is_next) = (with_next(&self.path), next, true);
        if let Err(error) = self.finish() {
            tracing::error!("the key of the audit log cannot be renamed: {error}");
        }
    }

    /// Gives the file of a key that a line of the index names its final name.
    fn finish(&mut self) -> io::Result<()> {
        if self.is_next {
            let path = without_next(&self.path);
            std::fs::rename(&self.path, &path)?;
            (self.path, self.is_next) = (path, false);
        }
        Ok(())
    }
}

fn lost(directory: &Path, expected: &str) -> KeyError {
    KeyError::Lost { directory: directory.to_owned(), expected: expected.to_owned() }
}

fn with_next(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(NEXT);
    name.into()
}

fn without_next(path: &Path) -> PathBuf {
    let name = path.as_os_str().as_bytes();
    let name = name.strip_suffix(NEXT.as_bytes()).unwrap_or(name);
    OsStr::from_bytes(name).into()
}

/// Creates the first key of the log in `log`, unless it exists. Unlike [`LogKey::load`], it needs no lock: it changes no file
/// that exists.
pub(super) fn create_first(directory: &Path, log: &Path) -> Result<(), KeyError> {
    let path = own_file(directory, log)?;
    match SigningKey::load(&path)? {
        Some(_) => Ok(()),
        None => LogKey::create(path).map(drop),
    }
}

/// Returns the path of the file for the key of the log in `log`. The first log that asks uses the file [`KEY_FILE`].
fn own_file(directory: &Path, log: &Path) -> Result<PathBuf, KeyError> {
    let owner = directory.join(OWNER_FILE);
    let log = std::path::absolute(log).unwrap_or_else(|_| log.to_owned());
    let log = log.as_os_str().as_bytes();
    let claim = || match files::read_bytes_bounded(&owner, PATH_BYTES_MAX)? {
        Some(path) => Ok(path),
        None => files::create_durably(&owner, log),
    };
    let first = claim().map_err(|source| KeyError::File { path: owner.clone(), source })?;
    Ok(directory.join(match first == log {
        true => KEY_FILE.to_owned(),
        false => format!("{KEY_FILE}-{}", &HEXLOWER.encode(&hash(log))[..PATH_HASH_CHARS]),
    }))
}

/// Returns the paths of all files with keys in a directory, those of other logs too, with their public keys.
fn all(directory: &Path) -> Result<Vec<(PathBuf, PublicKey)>, KeyError> {
    let to_key_error = |source| KeyError::File { path: directory.to_owned(), source };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(to_key_error)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(to_key_error)?;
        if entry.file_name().as_bytes().starts_with(KEY_FILE.as_bytes()) && found.len() < KEY_FILES_MAX {
            match SigningKey::load(&entry.path()) {
                Ok(key) => found.extend(key.map(|key| (entry.path(), key.public_key()))),
                Err(KeyError::InvalidKey(path)) => tracing::warn!("{} contains no key", path.display()),
                Err(error) => return Err(error),
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

fn find(directory: &Path, key: &PublicKey) -> Result<Option<PathBuf>, KeyError> {
    Ok(all(directory)?.into_iter().find_map(|(path, found)| (found == *key).then_some(path)))
}

/// Reads the key of the next line of an index, and changes nothing.
///
/// # Errors
/// [`KeyError::Lost`] if no file has it.
pub(super) fn read(directory: &Path, expected: &ExpectedKey) -> Result<SigningKey, KeyError> {
    let path = match expected {
        ExpectedKey::Next(key) => find(directory, key)?.ok_or_else(|| lost(directory, &key.to_hex()))?,
        ExpectedKey::Any | ExpectedKey::Existing => directory.join(KEY_FILE),
    };
    SigningKey::load(&path)?.ok_or_else(|| lost(directory, "that of its last line"))
}

/// Returns the public keys of all files with keys in a directory.
///
/// # Errors
/// [`KeyError`] if a file cannot be read.
pub fn public_keys(directory: &Path) -> Result<HashSet<PublicKey>, KeyError> {
    Ok(all(directory)?.into_iter().map(|(_, key)| key).collect())
}

/// Returns the paths of the files in a directory that contain secrets of the audit log.
pub fn key_files(directory: &Path) -> Vec<PathBuf> {
    let key = directory.join(KEY_FILE);
    let mut paths = vec![with_next(&key), key, directory.join(super::signing::SALT_FILE)];
    paths.extend(all(directory).unwrap_or_default().into_iter().map(|(path, _)| path));
    paths.sort();
    paths.dedup();
    paths
}
