//! Lets a process of root write files for a process of another account.
//!
//! The configuration of a service belongs to root, and commands that change it also use files of the service's account,
//! and start its servers. So the command runs as that account, and asks a process that stayed root to write the files
//! that root has named: no others, and none of another directory.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::Gid;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::new_file::{BACKUP, NewFile, PRIVATE_MODE};
use crate::path_trust::{Strictness, TrustedOwners, check_path};

/// Maximum size of a request. A text file has at most 4 MiB, which JSON can make six times as long.
const REQUEST_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Mode of a new file, which the group of the account may read.
const NEW_FILE_MODE: u32 = 0o640;

/// A change of the directory, by names of files in it.
#[derive(Debug, Serialize, Deserialize)]
enum FileOperation {
    /// Creates a file with the owner and mode of the file `like`.
    Create { name: String, text: String, like: Option<String> },
    /// Renames a file that was created before.
    Rename { from: String, to: String },
    /// Gives a file that was created before another name, which no file has.
    Link { from: String, to: String },
    /// Removes a file that was created before.
    Remove { name: String },
}

/// The files that the process of root may write, and the group that may read them.
#[derive(Clone, Debug)]
pub struct Delegation {
    pub directory: PathBuf,
    /// The names of the files that may be replaced.
    pub names: Vec<String>,
    pub readers: Gid,
}

/// The other end of the connection to the process of root, and the directory of the files.
static DELEGATE: OnceLock<(PathBuf, Mutex<BufReader<UnixStream>>)> = OnceLock::new();

/// Lets the process at the other end of `connection` write the files of this directory for this process from now on.
pub fn delegate(directory: PathBuf, connection: UnixStream) {
    // Set once, at the start of the process.
    let _ = DELEGATE.set((directory, Mutex::new(BufReader::new(connection))));
}

/// Whether files of the directory of `path` are written by the process of root.
pub fn is_delegated(path: &Path) -> bool {
    of(path).is_some()
}

/// Creates a file. `None` if files of its directory are not delegated.
pub(crate) fn create(path: &Path, text: &str, like: Option<&Path>) -> Option<io::Result<()>> {
    let like = like.map(name);
    Some(ask(path, |name| FileOperation::Create { name, text: text.to_owned(), like })).flatten()
}

pub(crate) fn rename(from: &Path, to: &Path) -> Option<io::Result<()>> {
    ask(from, |from| FileOperation::Rename { from, to: name(to) })
}

pub(crate) fn link(from: &Path, to: &Path) -> Option<io::Result<()>> {
    ask(from, |from| FileOperation::Link { from, to: name(to) })
}

pub(crate) fn remove(path: &Path) -> Option<io::Result<()>> {
    ask(path, |name| FileOperation::Remove { name })
}

fn of(path: &Path) -> Option<&'static Mutex<BufReader<UnixStream>>> {
    let (directory, connection) = DELEGATE.get()?;
    (path.parent() == Some(directory)).then_some(connection)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn ask(path: &Path, request: impl FnOnce(String) -> FileOperation) -> Option<io::Result<()>> {
    let mut connection = of(path)?.lock();
    let exchange = || {
        let mut line = serde_json::to_vec(&request(name(path)))?;
        line.push(b'\n');
        connection.get_mut().write_all(&line)?;
        let mut answer = String::new();
        (&mut *connection).take(REQUEST_BYTES_MAX).read_line(&mut answer)?;
        let answer: Result<(), String> = serde_json::from_str(&answer)?;
        answer.map_err(io::Error::other)
    };
    Some(exchange())
}

impl Delegation {
    /// Carries out the requests of the other process until it ends.
    ///
    /// # Errors
    /// If anybody but root can change the directory, or the connection fails.
    pub fn serve(&self, connection: UnixStream) -> io::Result<()> {
        check_path(&self.directory, &TrustedOwners::root(), Strictness::Strict).map_err(io::Error::other)?;
        if !self.directory.is_dir() {
            return Err(io::Error::other(format!("{} is no directory", self.directory.display())));
        }
        let mut created = BTreeSet::new();
        let served = self.answer_all(connection, &mut created);
        // Drafts of a command that was killed.
        for name in created.iter().filter(|name| name.starts_with('.')) {
            let _ = std::fs::remove_file(self.directory.join(name));
        }
        served
    }

    fn answer_all(&self, connection: UnixStream, created: &mut BTreeSet<String>) -> io::Result<()> {
        let mut requests = BufReader::new(connection);
        loop {
            let mut line = Vec::new();
            (&mut requests).take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(());
            }
            let done = serde_json::from_slice(&line).map_err(io::Error::from);
            let done = done.and_then(|request| self.carry_out(request, created));
            let mut answer = serde_json::to_vec(&done.map_err(|error| error.to_string()))?;
            answer.push(b'\n');
            requests.get_mut().write_all(&answer)?;
        }
    }

    fn carry_out(&self, request: FileOperation, created: &mut BTreeSet<String>) -> io::Result<()> {
        let path = |name: &str| self.directory.join(name);
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        match request {
            FileOperation::Create { name, text, like } => {
                let is_permitted = self.names.iter().any(|known| is_beside(&name, known));
                if !is_permitted || like.as_ref().is_some_and(|like| !self.names.contains(like)) {
                    return refused();
                }
                let like = like.map(|like| path(&like)).filter(|like| like.exists());
                // A backup may hold what nobody but root should read any more.
                let readers = Some(self.readers).filter(|_| !name.contains(BACKUP));
                let mode = if readers.is_some() { NEW_FILE_MODE } else { PRIVATE_MODE };
                let new = NewFile { like: like.as_deref(), mode, group: readers };
                new.create(&path(&name), &text)?;
                created.insert(name);
                Ok(())
            }
            FileOperation::Rename { from, to } if created.contains(&from) && self.names.contains(&to) => {
                std::fs::rename(path(&from), path(&to))?;
                created.remove(&from);
                Ok(())
            }
            FileOperation::Link { from, to } if created.contains(&from) && self.names.contains(&to) => {
                std::fs::hard_link(path(&from), path(&to))
            }
            FileOperation::Remove { name } if created.remove(&name) => std::fs::remove_file(path(&name)),
            FileOperation::Rename { .. } | FileOperation::Link { .. } | FileOperation::Remove { .. } => {
                refused()
            }
        }
    }
}

/// Whether a name is that of a draft or of a backup of the file `known`.
fn is_beside(name: &str, known: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_draft = name.strip_prefix('.').and_then(|name| name.strip_prefix(known)?.strip_prefix('.'));
    let of_backup = name.strip_prefix(known).and_then(|name| name.strip_prefix(BACKUP));
    of_draft.or(of_backup).is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(name: &str) -> FileOperation {
        FileOperation::Create { name: name.into(), text: "x".into(), like: None }
    }

    fn rename(from: &str, to: &str) -> FileOperation {
        FileOperation::Rename { from: from.into(), to: to.into() }
    }

    #[test]
    fn only_the_named_files_are_replaced() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let delegation = Delegation {
            directory: directory.path().canonicalize().expect("a path"),
            names: vec!["config.toml".into()],
            readers: Gid::from_raw(4_242),
        };
        let mut created = BTreeSet::new();
        for (request, is_done) in [
            (create("config.toml"), false),
            (create("requirements.toml"), false),
            (create(".requirements.toml.1"), false),
            (create("../x.1"), false),
            (create(".config.toml./../../x"), false),
            (create(".config.toml.1"), true),
            (create(".config.toml.1"), false),
            (create(".config.toml.2"), true),
            (create("config.toml.lockhouse-backup-1"), true),
            (rename(".config.toml.1", "requirements.toml"), false),
            (rename(".config.toml.3", "config.toml"), false),
            (rename(".config.toml.1", "config.toml"), true),
            (rename(".config.toml.1", "config.toml"), false),
            (FileOperation::Remove { name: "config.toml".into() }, false),
            (FileOperation::Remove { name: ".config.toml.2".into() }, true),
        ] {
            let text = format!("{request:?}");
            let done = delegation.carry_out(request, &mut created);
            assert_eq!(done.is_ok(), is_done, "{text}: {done:?}");
        }
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .expect("readable")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        assert_eq!(names, ["config.toml", "config.toml.lockhouse-backup-1"]);
        use std::os::unix::fs::MetadataExt;
        let made = std::fs::metadata(directory.path().join("config.toml")).expect("a file");
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (0, 4_242, 0o640));
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::chown(directory.path(), Some(4_242), None).expect("an owner");
        let path = directory.path().canonicalize().expect("a path");
        let delegation = Delegation { directory: path, names: Vec::new(), readers: Gid::from_raw(0) };
        let (_, connection) = UnixStream::pair().expect("a connection");
        assert!(delegation.serve(connection).is_err());
    }
}
