//! The journal of `lockhouse setup`: the content of each changed file before and after the change, so that
//! `lockhouse setup --undo` can take the changes back. A change is recorded before it is made.
//!
//! The journal is the directory `setup` in the state directory. Its files have mode 0600, since they may contain the
//! secrets of AI clients' files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::directories;
use lockhouse_base::files::{create_private_directory, read_bounded, replace_durably};
use lockhouse_base::text_files::write_target;
use lockhouse_client_files::{AiClient, EntryPlace};
use lockhouse_config::ConfigError;
use lockhouse_policies::Source;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

const MANIFEST: &str = "manifest.json";
const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The maximum size in bytes of a recorded file.
const COPY_BYTES_MAX: u64 = 5 * 1024 * 1024;
/// The maximum number of recorded changes.
const STEPS_MAX: usize = 200;
/// The maximum number of copies of files in the journal, with those that an incomplete `--undo` has kept.
const COPIES_MAX: usize = 1_000;

/// A change of one file.
#[derive(Clone, Serialize, Deserialize)]
pub struct Step {
    pub path: PathBuf,
    /// The name of the copy of the file before the change. `None` if the file did not exist.
    pub before: Option<String>,
    /// The name of the copy of the file after the change.
    pub after: String,
    pub change: Change,
}

/// What was changed in a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A file of an AI client: the entry for Lockhouse if it was added or changed, and the servers that were removed.
    Client { client: AiClient, own: Option<EntryPlace>, moved: Vec<EntryPlace> },
    /// Lockhouse's configuration: the added servers, and the files with their secrets.
    Configuration { servers: Vec<String>, secrets: Vec<Secret> },
    /// A new policy.
    Policy,
}

/// A file with a secret, and the SHA-256 of its content.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret {
    pub path: PathBuf,
    pub sha256: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Manifest {
    steps: Vec<Step>,
}

/// The opened journal. It is locked, so that two runs of `lockhouse setup` do not change files at the same time.
pub struct Journal {
    directory: PathBuf,
    manifest: Manifest,
    _lock: Flock<std::fs::File>,
}

impl Journal {
    /// Opens the journal, and creates it if it does not exist.
    pub fn open() -> Result<Self, ConfigError> {
        let directory = directory()?;
        create_private_directory(&directory).map_err(|source| unwritable(&directory, source))?;
        Self::load(directory)
    }

    /// Opens the journal. `None` if it does not exist.
    pub fn open_existing() -> Result<Option<Self>, ConfigError> {
        let directory = directory()?;
        if std::fs::symlink_metadata(&directory).is_err() {
            return Ok(None);
        }
        Self::load(directory).map(Some)
    }

    fn load(directory: PathBuf) -> Result<Self, ConfigError> {
        let unusable = |reason: String| ConfigError::Unusable { path: directory.clone(), reason };
        let metadata =
            std::fs::symlink_metadata(&directory).map_err(|source| unwritable(&directory, source))?;
        if !metadata.is_dir() || metadata.uid() != nix::unistd::geteuid().as_raw() {
            return Err(unusable("it is not a directory of this user".into()));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(unusable("other users can write to it: run chmod go-w".into()));
        }
        let lock = std::fs::File::open(&directory).map_err(|source| unwritable(&directory, source))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock)
            .map_err(|_| unusable("another lockhouse setup uses it".into()))?;
        let text = read_bounded(&directory.join(MANIFEST), MANIFEST_BYTES_MAX)
            .map_err(|error| unusable(format!("{MANIFEST}: {error}")))?;
        let manifest = text.as_deref().map_or_else(|| Ok(Manifest::default()), serde_json::from_str);
        let manifest = manifest.map_err(|error| unusable(format!("{MANIFEST}: {error}")))?;
        Ok(Self { directory, manifest, _lock: lock })
    }

    /// Returns the recorded changes, oldest first.
    pub fn steps(&self) -> &[Step] {
        &self.manifest.steps
    }

    /// Records a change that is made next: the content of the file before and after it.
    pub fn record(
        &mut self,
        path: &Path,
        before: Option<&str>,
        after: &str,
        change: Change,
    ) -> io::Result<()> {
        if self.manifest.steps.len() >= STEPS_MAX {
            let words = format!("{STEPS_MAX} changes are recorded already: run `lockhouse setup --undo`");
            return Err(io::Error::other(words));
        }
        let number = (1..=COPIES_MAX).find(|number| {
            ["before", "after"].iter().all(|kind| {
                std::fs::symlink_metadata(self.directory.join(format!("{number}.{kind}"))).is_err()
            })
        });
        let full = || io::Error::other(format!("{} has {COPIES_MAX} copies", self.directory.display()));
        let number = number.ok_or_else(full)?;
        let copy = |kind: &str, text: &str| {
            let name = format!("{number}.{kind}");
            replace_durably(&self.directory.join(&name), text.as_bytes()).map(|()| name)
        };
        let before = before.map(|text| copy("before", text)).transpose()?;
        let after = copy("after", after)?;
        self.manifest.steps.push(Step { path: path.to_owned(), before, after, change });
        self.save()
    }

    /// Reads a copy of the file of a step. Its errors name the file itself.
    pub fn copy(&self, step: &Step, name: &str) -> io::Result<Source> {
        if name.contains('/') {
            return Err(io::Error::other(format!("{name:?} is not the name of a copy")));
        }
        let text = read_bounded(&self.directory.join(name), COPY_BYTES_MAX)?;
        let missing = || io::Error::other(format!("{} is missing", self.directory.join(name).display()));
        Ok(Source { path: step.path.display().to_string(), text: text.ok_or_else(missing)? })
    }

    /// Returns the path of the copy of a step's file before the change.
    pub fn backup(&self, step: &Step) -> Option<PathBuf> {
        step.before.as_ref().map(|name| self.directory.join(name))
    }

    /// Removes the record of a change that was taken back. With `keeps_backup`, the copy of the file before the change
    /// stays.
    pub fn forget(&mut self, index: usize, keeps_backup: bool) -> io::Result<()> {
        let step = self.manifest.steps.remove(index);
        self.save()?;
        let before = step.before.filter(|_| !keeps_backup);
        for name in before.iter().chain([&step.after]).filter(|name| !name.contains('/')) {
            let _ = std::fs::remove_file(self.directory.join(name));
        }
        Ok(())
    }

    /// Removes the journal if no change is left in it. Copies that were kept stay.
    pub fn remove_if_empty(self) {
        if self.manifest.steps.is_empty() {
            let _ = std::fs::remove_file(self.directory.join(MANIFEST));
            let _ = std::fs::remove_dir(&self.directory);
        }
    }

    fn save(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.manifest)?;
        replace_durably(&self.directory.join(MANIFEST), text.as_bytes())
    }
}

fn directory() -> Result<PathBuf, ConfigError> {
    let state = directories::state();
    let missing = || ConfigError::Unusable {
        path: "setup".into(),
        reason: "there is no state directory for it: set HOME or XDG_STATE_HOME".into(),
    };
    let directory = state.ok_or_else(missing)?.join("setup");
    write_target(&directory).map_err(|source| unwritable(&directory, source))?;
    Ok(directory)
}

fn unwritable(path: &Path, source: io::Error) -> ConfigError {
    ConfigError::Unwritable { path: path.to_owned(), source }
}
