//! The store of saved skills, their older versions and drafts. Several processes may use one store.
//!
//! A new version of a skill replaces the current one by an atomic exchange of folders, so that readers always
//! find a complete version. Writers hold a lock on the store. Drafts are in a separate folder, from which
//! programs cannot import.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_base::principal::owner_of_name;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};

use super::skill::Skill;
use super::skill_folder::{self, LoadError};
use super::skill_name::Name;

/// Maximum number of saved skills in one store.
/// Bound: skills.
const SKILLS_MAX: usize = 500;
/// Maximum number of drafts (skills that are not yet approved) in one store.
/// Bound: skills.
const DRAFTS_MAX: usize = 100;
/// Maximum number of older versions of each skill. When there are more, the oldest ones are removed.
/// Bound: skills.
const VERSIONS_MAX: usize = 20;
/// Maximum number of entries that are read from one directory of skills. Further entries are ignored.
/// Bound: skills.
const ENTRIES_MAX: usize = 2_000;

/// The name of the subfolder, in the folder of a skill, with the older versions of the skill.
const VERSIONS: &str = "versions";
/// The name of the folder, in a store of skills, that contains the drafts.
const DRAFTS: &str = ".drafts";
/// The name of the folder, in the user's own store of skills, that contains the stores of AI clients.
const CLIENTS: &str = ".clients";
/// The name of the file, in the skill store of an AI client, that contains the client's name.
const CLIENT: &str = ".client";
/// Maximum length in bytes of the file with the name of an AI client.
const CLIENT_BYTES_MAX: u64 = 4 * 1024;
/// The name of the file in a store of skills that writers lock.
const LOCK: &str = ".lock";
/// Prefix of the names of temporary folders in a store. Such a folder is not yet complete, or is being
/// removed.
const UNFINISHED: &str = ".new-";

/// Why a skill could not be written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no place to keep skills: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoDirectory,
    #[error(
        "there are {SKILLS_MAX} skills already, which is the limit; a person removes some with `lockhouse skills remove`"
    )]
    TooManySkills,
    #[error("{DRAFTS_MAX} drafts wait for a person already; `lockhouse skills list` shows them")]
    TooManyDrafts,
    #[error(
        "the folder {0} exists and is not a valid skill, so it is not replaced; `lockhouse skills list` says why"
    )]
    NotReplaceable(Name),
    #[error("the skills in {path} cannot be written: {source}")]
    WriteFailed { path: PathBuf, source: io::Error },
}

/// The result of storing a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftOutcome {
    /// The draft is stored and requires approval.
    Stored(Skill),
    /// The content of the draft equals that of the skill's current version, so nothing is stored and no approval
    /// is needed. Contains the current version.
    Unchanged(Skill),
}

/// A directory with the skills of the user or of one AI client.
#[derive(Clone, Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// The name of the AI client whose store this is; `None` for the user's own store.
    client: Option<String>,
}

impl Store {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, client: None }
    }

    /// Returns the skill store of one AI client. It is in a subfolder of the user's own store that is not read as
    /// a skill.
    pub(super) fn for_client(&self, client: &str) -> Self {
        let folder = owner_of_name(client).to_hex();
        Self { directory: self.directory.join(CLIENTS).join(folder), client: Some(client.to_owned()) }
    }

    /// Returns the skill store in the subfolder `folder`, which is named by a digest of the AI client's name.
    pub(super) fn in_folder(&self, folder: &str) -> io::Result<Self> {
        let directory = self.directory.join(CLIENTS).join(folder);
        let client = files::read_bounded(&directory.join(CLIENT), CLIENT_BYTES_MAX)?;
        Ok(Self { directory, client: client.filter(|name| !name.is_empty()) })
    }

    /// Returns the subfolders of AI clients, as [`Self::in_folder`] takes them.
    pub(super) fn client_folders(&self) -> Vec<String> {
        folder_names(&self.directory.join(CLIENTS)).collect()
    }

    /// Removes the skill store of one AI client. Returns whether there was one.
    pub(super) fn forget_client(&self, client: &str) -> io::Result<bool> {
        files::remove_directory(self.for_client(client).directory())
    }

    pub(super) fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Returns the names of the AI clients that have a store of skills, sorted.
    pub(super) fn clients(&self) -> Vec<String> {
        let named = |folder: String| self.in_folder(&folder).ok()?.client;
        let mut names: Vec<String> = self.client_folders().into_iter().filter_map(named).collect();
        names.sort();
        names
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn drafts_directory(&self) -> PathBuf {
        self.directory.join(DRAFTS)
    }

    /// Reads the current version of a skill.
    pub(super) fn current(&self, name: &Name) -> Result<Skill, LoadError> {
        skill_folder::read(&self.directory, name)
    }

    /// Reads the draft of the skill with this name.
    pub(super) fn draft(&self, name: &Name) -> Result<Skill, LoadError> {
        skill_folder::read(&self.drafts_directory(), name)
    }

    /// Reads the version of a skill with this number: the current one or an older one.
    pub(super) fn version(&self, name: &Name, version: u32) -> Result<Skill, LoadError> {
        match self.current(name) {
            Ok(current) if current.version == version => Ok(current),
            _ => skill_folder::read_at(&self.versions_directory(name).join(version.to_string()), name),
        }
    }

    /// Returns the version numbers of the older versions of a skill, in ascending order.
    pub(super) fn older_versions(&self, name: &Name) -> Vec<u32> {
        let mut versions: Vec<u32> =
            folder_names(&self.versions_directory(name)).filter_map(|name| name.parse().ok()).collect();
        versions.sort_unstable();
        versions
    }

    fn versions_directory(&self, name: &Name) -> PathBuf {
        self.directory.join(name.as_str()).join(VERSIONS)
    }

    /// Saves a skill as the current version, with the next version number. If the content equals that of the current
    /// version, returns the current version and writes nothing.
    pub(super) fn save(&self, skill: &Skill) -> Result<Skill, StoreError> {
        let _lock = self.lock()?;
        let current = self.current_if_replaceable(skill)?;
        if let Some(current) = current.as_ref().filter(|current| current.has_same_content(skill)) {
            return Ok(current.clone());
        }
        let version = current.as_ref().map_or(1, |current| current.version.saturating_add(1));
        let skill = Skill { version, ..skill.clone() };
        self.make_current(&skill, current.as_ref())?;
        Ok(skill)
    }

    /// Makes a skill with its version number the current version, as another host has saved it. Writes nothing if it is that already.
    pub(super) fn replace(&self, skill: &Skill) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let current = self.current_if_replaceable(skill)?;
        if current.as_ref() == Some(skill) {
            return Ok(());
        }
        self.make_current(skill, current.as_ref())
    }

    /// Writes a skill as the current version, and keeps the one before.
    fn make_current(&self, skill: &Skill, before: Option<&Skill>) -> Result<(), StoreError> {
        let place = self.directory.join(skill.name.as_str());
        let written = self.install(&self.directory, &place, skill).and_then(|moved| match (moved, before) {
            (Some(moved), Some(before)) => self.archive(&moved, before),
            _ => Ok(()),
        });
        written.map_err(|source| self.write_failed(source))
    }

    /// Stores a draft, and replaces an older draft of the same name. If the content equals that of the current version,
    /// returns the current version and writes nothing.
    pub(super) fn save_draft(&self, skill: &Skill) -> Result<DraftOutcome, StoreError> {
        let _lock = self.lock()?;
        let current = self.current_if_replaceable(skill)?;
        if let Some(current) = current.as_ref().filter(|current| current.has_same_content(skill)) {
            return Ok(DraftOutcome::Unchanged(current.clone()));
        }
        let drafts = self.drafts_directory();
        files::create_private_directory(&drafts).map_err(|source| self.write_failed(source))?;
        let place = drafts.join(skill.name.as_str());
        if !place.exists() && folder_names(&drafts).count() >= DRAFTS_MAX {
            return Err(StoreError::TooManyDrafts);
        }
        let version = current.map_or(1, |current| current.version.saturating_add(1));
        let skill = Skill { version, ..skill.clone() };
        let before = self.install(&drafts, &place, &skill).map_err(|source| self.write_failed(source))?;
        before.map_or(Ok(()), std::fs::remove_dir_all).map_err(|source| self.write_failed(source))?;
        Ok(DraftOutcome::Stored(skill))
    }

    /// Removes the draft that was read as `skill`, unless a different draft has replaced it since.
    pub(super) fn remove_draft(&self, skill: &Skill) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        match self.draft(&skill.name) {
            Ok(draft) if draft == *skill => self.remove_folder(&self.drafts_directory(), &skill.name),
            _ => Ok(()),
        }
    }

    /// Removes a skill with all of its versions and its draft. Returns whether the store had the skill or a draft of
    /// it.
    pub(super) fn remove(&self, name: &Name) -> Result<bool, StoreError> {
        let _lock = self.lock()?;
        let mut found = false;
        for parent in [self.directory.clone(), self.drafts_directory()] {
            if parent.join(name.as_str()).symlink_metadata().is_ok() {
                found = true;
                self.remove_folder(&parent, name)?;
            }
        }
        Ok(found)
    }

    /// Removes the folder of a skill. The folder is renamed first, so that readers find the whole folder or nothing.
    fn remove_folder(&self, parent: &Path, name: &Name) -> Result<(), StoreError> {
        let (place, aside) = (parent.join(name.as_str()), staging_path(parent));
        let removed =
            std::fs::rename(&place, &aside).and_then(|()| match aside.symlink_metadata()?.is_dir() {
                true => std::fs::remove_dir_all(&aside),
                false => std::fs::remove_file(&aside),
            });
        removed.map_err(|source| self.write_failed(source))
    }

    /// Returns the current version of a skill; `None` if there is none. Fails if no new version may be saved,
    /// because the store is full or the existing folder of this name is not a valid skill.
    fn current_if_replaceable(&self, skill: &Skill) -> Result<Option<Skill>, StoreError> {
        match self.current(&skill.name) {
            Ok(current) => Ok(Some(current)),
            Err(LoadError::Absent) if folder_names(&self.directory).count() < SKILLS_MAX => Ok(None),
            Err(LoadError::Absent) => Err(StoreError::TooManySkills),
            Err(LoadError::NoCode | LoadError::Invalid(_)) => {
                Err(StoreError::NotReplaceable(skill.name.clone()))
            }
        }
    }

    /// Writes a skill to a temporary folder in `parent`, then moves this folder to `place`. If there was a folder
    /// at `place`, returns the path to which that folder was moved.
    fn install(&self, parent: &Path, place: &Path, skill: &Skill) -> io::Result<Option<PathBuf>> {
        let staged = staging_path(parent);
        let exists = place.symlink_metadata().is_ok();
        let flags = if exists { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        let put = skill_folder::write(&staged, skill)
            .and_then(|()| Ok(renameat2(AT_FDCWD, &staged, AT_FDCWD, place, flags)?))
            .and_then(|()| File::open(parent)?.sync_all());
        if let Err(error) = put {
            let _ = std::fs::remove_dir_all(&staged);
            return Err(error);
        }
        Ok(exists.then_some(staged))
    }

    /// Moves the folder of a skill's previous version, which is now at `before`, to the older versions. `was` is
    /// the previous version. Removes the oldest versions if there are more than [`VERSIONS_MAX`].
    fn archive(&self, before: &Path, was: &Skill) -> io::Result<()> {
        let versions = self.versions_directory(&was.name);
        match std::fs::rename(before.join(VERSIONS), &versions) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                files::create_private_directory(&versions)?
            }
            moved => moved?,
        }
        let kept = versions.join(was.version.to_string());
        if kept.exists() {
            std::fs::remove_dir_all(&kept)?;
        }
        std::fs::rename(before, kept)?;
        let older = self.older_versions(&was.name);
        let too_many = older.len().saturating_sub(VERSIONS_MAX);
        older
            .iter()
            .take(too_many)
            .try_for_each(|version| std::fs::remove_dir_all(versions.join(version.to_string())))
    }

    /// Creates the store's directory if necessary (with the file that names its AI client), and waits for the lock
    /// of the store, which writers must hold.
    fn lock(&self) -> Result<Flock<File>, StoreError> {
        let locked = files::create_private_directory(&self.directory).and_then(|()| {
            if let Some(client) = &self.client {
                let _ = files::create_durably(&self.directory.join(CLIENT), client.as_bytes())?;
            }
            let path = self.directory.join(LOCK);
            let file = files::open_to_append(&path)?;
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
        });
        locked.map_err(|source| self.write_failed(source))
    }

    fn write_failed(&self, source: io::Error) -> StoreError {
        StoreError::WriteFailed { path: self.directory.clone(), source }
    }

    /// Returns the names of the folders of all drafts.
    pub(super) fn draft_names(&self) -> Vec<String> {
        folder_names(&self.drafts_directory()).collect()
    }
}

/// Returns an unused path in `parent` for a temporary folder.
fn staging_path(parent: &Path) -> PathBuf {
    parent.join(format!("{UNFINISHED}{}", uuid::Uuid::now_v7().simple()))
}

/// Returns the names of the entries of a directory that are not regular files and do not begin with a dot: folders, and
/// symbolic links, which are rejected when they are read.
pub(super) fn folder_names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(ENTRIES_MAX).filter_map(Result::ok);
    let is_file = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let names =
        entries.filter(move |entry| !is_file(entry)).filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use lockhouse_protocol::Language;

    fn skill(code: &str) -> Skill {
        Skill {
            name: Name::parse("weekly_report").expect("a name"),
            description: "Reports: \"a\"".into(),
            tags: vec!["report".into(), "w k".into()],
            language: Language::Python,
            version: 1,
            code: code.into(),
            tests: Some("assert True\n".into()),
        }
    }

    #[test]
    fn a_forgotten_client_has_no_skills_and_others_keep_theirs() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(directory.path().join("skills"));
        for store in [&store, &store.for_client("token:a"), &store.for_client("token:b")] {
            store.save(&skill("def f(): return 1\n")).expect("saved");
        }
        assert_eq!(store.clients(), ["token:a", "token:b"]);
        assert!(store.forget_client("token:a").expect("removed"));
        assert!(!store.forget_client("token:a").expect("nothing to remove"));
        assert_eq!(store.clients(), ["token:b"]);
        let name = skill("").name;
        assert_eq!(store.for_client("token:a").current(&name), Err(LoadError::Absent));
        assert!(store.current(&name).is_ok() && store.for_client("token:b").current(&name).is_ok());
    }

    #[test]
    fn each_save_makes_the_next_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(directory.path().join("skills"));
        for version in 1..=25 {
            let saved = store.save(&skill(&format!("def f(): return {version}\n"))).expect("saved");
            assert_eq!(saved.version, version);
            assert_eq!(store.current(&saved.name).as_ref(), Ok(&saved));
        }
        let name = skill("").name;
        assert_eq!(store.older_versions(&name), (5..25).collect::<Vec<_>>());
        assert_eq!(store.version(&name, 7).expect("kept").code, "def f(): return 7\n");
        assert_eq!(store.version(&name, 25).expect("kept").code, "def f(): return 25\n");
        assert_eq!(store.version(&name, 3), Err(LoadError::Absent));
        // Saving the same content again makes no new version.
        assert_eq!(store.save(&skill("def f(): return 25\n")).expect("saved").version, 25);
        assert_eq!(folder_names(store.directory()).collect::<Vec<_>>(), ["weekly-report"]);
        let mode = |path: &str| {
            std::fs::metadata(store.directory().join(path)).expect("there").permissions().mode() & 0o777
        };
        assert_eq!((mode("weekly-report"), mode("weekly-report/skill.py")), (0o700, 0o600));
        assert_eq!(
            std::fs::read_dir(store.directory()).expect("readable").count(),
            2,
            "nothing is left over"
        );
        assert!(store.remove(&name).expect("removed") && !store.remove(&name).expect("nothing there"));
        assert_eq!(store.current(&name), Err(LoadError::Absent));
    }

    #[test]
    fn a_draft_is_not_the_skill() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(directory.path().join("skills"));
        let draft = |code: &str| match store.save_draft(&skill(code)).expect("a draft") {
            DraftOutcome::Stored(draft) => draft,
            DraftOutcome::Unchanged(current) => panic!("{current:?} says the same"),
        };
        let first = draft("def f(): return 1\n");
        assert_eq!(store.current(&first.name), Err(LoadError::Absent));
        let second = draft("def f(): return 2\n");
        assert_eq!(store.draft(&first.name).as_ref(), Ok(&second));
        // Approving the first draft keeps the second one.
        store.save(&first).expect("saved");
        store.remove_draft(&first).expect("nothing wrong");
        assert_eq!(store.draft(&first.name).as_ref(), Ok(&second));
        store.remove_draft(&second).expect("nothing wrong");
        assert_eq!(store.draft(&first.name), Err(LoadError::Absent));
        let again = store.save_draft(&first).expect("no error");
        assert_eq!(again, DraftOutcome::Unchanged(store.current(&first.name).expect("saved")));
    }

    #[test]
    fn several_writers_lose_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::new(directory.path().join("skills"));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let store = store.clone();
                scope.spawn(move || {
                    for number in 0..4 {
                        store
                            .save(&skill(&format!("def f(): return ({writer}, {number})\n")))
                            .expect("saved");
                        store.current(&skill("").name).expect("always whole");
                    }
                });
            }
        });
        let name = skill("").name;
        assert_eq!(store.current(&name).expect("there").version, 16);
        assert_eq!(store.older_versions(&name), (1..16).collect::<Vec<_>>());
    }
}
