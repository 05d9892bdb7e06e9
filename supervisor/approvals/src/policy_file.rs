//! The policy file of the user, which an approval with the scope `always` changes.

use std::path::{Path, PathBuf};

use lockhouse_base::text_files::{self, ReadError, read_source};
use lockhouse_policies::Source;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{AccessFlags, access};

/// Why the policy file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("{path} stays as it is: it was changed since the change was shown")]
    Changed { path: PathBuf },
}

/// The policy file of the user, by its path.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFile(PathBuf);

impl PolicyFile {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the current text of the policy file.
    pub fn read(&self) -> Result<Source, ReadError> {
        read_source(&self.0)
    }

    /// Whether this process may write the policy file and its directory.
    pub fn is_writable(&self) -> bool {
        let (path, directory) = self.target();
        text_files::write_target(&self.0).is_ok()
            && access(&path, AccessFlags::W_OK).is_ok()
            && access(&directory, AccessFlags::W_OK).is_ok()
    }

    /// Replaces the text of the policy file. Fails if the current text is not `before`. During a replacement, a lock on
    /// the directory excludes replacements by other Lockhouse processes.
    pub fn replace(&self, before: &str, after: &str) -> Result<(), PolicyFileError> {
        let (path, directory) = self.target();
        let unwritable = |source| PolicyFileError::Unwritable { path: path.clone(), source };
        text_files::write_target(&self.0).map_err(unwritable)?;
        let lock = std::fs::File::open(&directory).map_err(unwritable)?;
        let _lock =
            Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| unwritable(error.into()))?;
        if self.read()?.text != before {
            return Err(PolicyFileError::Changed { path });
        }
        text_files::replace(&path, after).map_err(unwritable)
    }

    /// Returns the path of the policy file and that of its directory. Symbolic links are resolved, so that
    /// replacing the file does not replace a link.
    fn target(&self) -> (PathBuf, PathBuf) {
        let path = std::fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone());
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new(".")).to_owned();
        (path, directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_replaced_only_if_it_is_unchanged() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy.toml");
        let link = directory.path().join("link.toml");
        std::fs::write(&path, "one").expect("a file");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let file = PolicyFile::new(link.clone());
        assert!(file.is_writable());
        file.replace("one", "two").expect("written");
        let refused = file.replace("one", "three").expect_err("changed since").to_string();
        assert!(refused.contains("was changed since"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "two");
        assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 2);
    }
}
