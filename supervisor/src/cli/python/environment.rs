//! The directory with the managed virtual environments: `current` is a link to the one in use. A new environment is built
//! beside it and replaces it only if it works.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lockhouse_base::text_files::write_target;
use lockhouse_config::{Settings, managed_directory};
use nix::fcntl::{Flock, FlockArg};

/// The name of the file with the exact version and the hashes of each package, in the managed directory.
const LOCK_FILE: &str = "requirements.lock";
const CURRENT: &str = "current";
const PREFIX: &str = "environment-";

/// Why the managed environment cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvironmentError {
    #[error("there is no place for the environment: neither STATE_DIRECTORY nor HOME is set")]
    NoDirectory,
    #[error(
        "`environment` of [python] in the configuration is {}, which this command does not change: install the packages \
         there, and add their names to `packages` of [python]; or remove the key `environment`", .0.display()
    )]
    NotManaged(PathBuf),
    #[error("another `lockhouse python` changes the environment; try again when it has finished")]
    InUse,
    #[error("cannot change {}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Interpreter(String),
}

/// The managed directory, locked for changes by this process.
pub(super) struct ManagedDirectory {
    path: PathBuf,
    _lock: Flock<std::fs::File>,
}

/// A new virtual environment. It is deleted unless it replaces the current one.
pub(super) struct NewEnvironment {
    pub(super) path: PathBuf,
    is_kept: bool,
}

impl ManagedDirectory {
    /// Opens the managed directory, and creates it if it does not exist.
    pub(super) fn open(settings: &Settings) -> Result<Self, EnvironmentError> {
        if let Some(environment) = settings.python_environment() {
            return Err(EnvironmentError::NotManaged(environment.to_owned()));
        }
        let path = managed_directory().ok_or(EnvironmentError::NoDirectory)?;
        let failed = |source| EnvironmentError::File { path: path.clone(), source };
        write_target(&path).map_err(failed)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(failed)?;
        let directory = std::fs::File::open(&path).map_err(failed)?;
        let lock = Flock::lock(directory, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|_| EnvironmentError::InUse)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.path.join(LOCK_FILE)
    }

    /// Returns the path for a new environment. An environment contains its absolute path, so it is never moved.
    pub(super) fn new_environment(&self) -> NewEnvironment {
        let id = uuid::Uuid::now_v7().simple().to_string();
        NewEnvironment { path: self.path.join(format!("{PREFIX}{id}")), is_kept: false }
    }

    /// Makes a new environment with its lock file the current one, and deletes all others.
    pub(super) fn replace_current(
        &self,
        mut environment: NewEnvironment,
        lock_text: &str,
    ) -> Result<(), EnvironmentError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| EnvironmentError::File { path, source }
        };
        let lock_draft = self.path.join(format!(".{LOCK_FILE}"));
        std::fs::write(&lock_draft, lock_text).map_err(failed(&lock_draft))?;
        std::fs::rename(&lock_draft, self.lock_file()).map_err(failed(&self.lock_file()))?;
        let (link, current) = (self.path.join(".current"), self.path.join(CURRENT));
        let _ = std::fs::remove_file(&link);
        let name = environment.path.file_name().unwrap_or_default();
        std::os::unix::fs::symlink(name, &link).map_err(failed(&link))?;
        std::fs::rename(&link, &current).map_err(failed(&current))?;
        environment.is_kept = true;
        self.remove_others(&environment.path);
        Ok(())
    }

    /// Deletes all environments but one: earlier ones, and those that an interrupted command left.
    fn remove_others(&self, current: &Path) {
        for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let is_environment = entry.file_name().to_string_lossy().starts_with(PREFIX);
            if is_environment && entry.path() != current {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

impl Drop for NewEnvironment {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
