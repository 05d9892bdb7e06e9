//! The skills that were saved here, their older versions, and drafts. Several processes share them.
//!
//! A version takes the place of the one before by one exchange of folders, so whoever reads finds one of the two whole. Who
//! writes holds a lock. Drafts are in a folder of their own, from which nothing is imported.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_base::principal::Owner;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};

use super::folder::{self, Unreadable};
use super::name::Name;
use super::skill::Skill;

/// Skills, and drafts.
const SKILLS_MAX: usize = 500;
const DRAFTS_MAX: usize = 100;
/// Older versions that are kept of each.
const VERSIONS_MAX: usize = 20;
/// Entries of a directory that are looked at.
const ENTRIES_MAX: usize = 2_000;

const VERSIONS: &str = "versions";
const DRAFTS: &str = ".drafts";
/// Folders of clients, and in each of these a file with its client's name.
const CLIENTS: &str = ".clients";
const CLIENT: &str = ".client";
const CLIENT_BYTES_MAX: u64 = 4 * 1024;
const LOCK: &str = ".lock";
/// Begins the name of a folder that is not whole yet, or not needed any more.
const UNFINISHED: &str = ".new-";

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no place to keep skills: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoPlace,
    #[error(
        "there are {SKILLS_MAX} skills already, which is the limit; a person removes some with `lockhouse skills remove`"
    )]
    TooManySkills,
    #[error("{DRAFTS_MAX} drafts wait for a person already; `lockhouse skills list` shows them")]
    TooManyDrafts,
    #[error(
        "there is a folder {0} already that is no skill which could be replaced; `lockhouse skills list` says why"
    )]
    Occupied(Name),
    #[error("the skills in {path} cannot be written: {source}")]
    Unwritten { path: PathBuf, source: io::Error },
}

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// It waits for a person.
    Kept(Skill),
    /// The current version says the same.
    Needless(Skill),
}

/// The directory of one user's skills.
#[derive(Clone, Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// Whose they are, where it is not the one who runs Lockhouse.
    client: Option<String>,
}

impl Store {
    pub(super) fn at(directory: PathBuf) -> Self {
        Self { directory, client: None }
    }

    /// The skills of one client, in a folder of its own that nothing else looks into.
    pub(super) fn of_client(&self, client: &str) -> Self {
        let folder = Owner::of_name(client).to_hex();
        Self { directory: self.directory.join(CLIENTS).join(folder), client: Some(client.to_owned()) }
    }

    pub(super) fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// The clients that have folders here.
    pub(super) fn clients(&self) -> Vec<String> {
        let clients = self.directory.join(CLIENTS);
        let named = |folder: String| {
            let name = files::read_bounded(&clients.join(folder).join(CLIENT), CLIENT_BYTES_MAX).ok()??;
            (!name.is_empty()).then_some(name)
        };
        let mut names: Vec<String> = folders(&clients).filter_map(named).collect();
        names.sort();
        names
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn drafts(&self) -> PathBuf {
        self.directory.join(DRAFTS)
    }

    /// A skill as it is now.
    pub(super) fn current(&self, name: &Name) -> Result<Skill, Unreadable> {
        folder::read(&self.directory, name)
    }

    pub(super) fn draft(&self, name: &Name) -> Result<Skill, Unreadable> {
        folder::read(&self.drafts(), name)
    }

    /// An older version.
    pub(super) fn version(&self, name: &Name, version: u32) -> Result<Skill, Unreadable> {
        match self.current(name) {
            Ok(current) if current.version == version => Ok(current),
            _ => folder::read_at(&self.versions(name).join(version.to_string()), name),
        }
    }

    /// The older versions, in their order.
    pub(super) fn older(&self, name: &Name) -> Vec<u32> {
        let mut versions: Vec<u32> =
            folders(&self.versions(name)).filter_map(|name| name.parse().ok()).collect();
        versions.sort_unstable();
        versions
    }

    fn versions(&self, name: &Name) -> PathBuf {
        self.directory.join(name.as_str()).join(VERSIONS)
    }

    /// Makes it the current version, with the next number. What says the same as the current one is that one.
    pub(super) fn save(&self, skill: &Skill) -> Result<Skill, StoreError> {
        let _lock = self.lock()?;
        let current = self.replaceable(skill)?;
        if let Some(current) = current.as_ref().filter(|current| current.says_the_same(skill)) {
            return Ok(current.clone());
        }
        let version = current.as_ref().map_or(1, |current| current.version.saturating_add(1));
        let skill = Skill { version, ..skill.clone() };
        let place = self.directory.join(skill.name.as_str());
        let written = self.put(&self.directory, &place, &skill).and_then(|before| match (before, &current) {
            (Some(before), Some(current)) => self.keep(&before, current),
            _ => Ok(()),
        });
        written.map_err(|source| self.unwritten(source))?;
        Ok(skill)
    }

    /// Keeps it where nothing imports it. One draft of a name takes the place of another. What says the same as the current
    /// version needs no approval: that one is given, as it is.
    pub(super) fn save_draft(&self, skill: &Skill) -> Result<Draft, StoreError> {
        let _lock = self.lock()?;
        let current = self.replaceable(skill)?;
        if let Some(current) = current.as_ref().filter(|current| current.says_the_same(skill)) {
            return Ok(Draft::Needless(current.clone()));
        }
        let drafts = self.drafts();
        files::private_directory(&drafts).map_err(|source| self.unwritten(source))?;
        let place = drafts.join(skill.name.as_str());
        if !place.exists() && folders(&drafts).count() >= DRAFTS_MAX {
            return Err(StoreError::TooManyDrafts);
        }
        let version = current.map_or(1, |current| current.version.saturating_add(1));
        let skill = Skill { version, ..skill.clone() };
        let before = self.put(&drafts, &place, &skill).map_err(|source| self.unwritten(source))?;
        before.map_or(Ok(()), std::fs::remove_dir_all).map_err(|source| self.unwritten(source))?;
        Ok(Draft::Kept(skill))
    }

    /// Takes a draft away, if it is still this one.
    pub(super) fn remove_draft(&self, skill: &Skill) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        match self.draft(&skill.name) {
            Ok(draft) if draft == *skill => self.remove_folder(&self.drafts(), &skill.name),
            _ => Ok(()),
        }
    }

    /// Takes away the skill with all of its versions, and its draft. Whether there was anything.
    pub(super) fn remove(&self, name: &Name) -> Result<bool, StoreError> {
        let _lock = self.lock()?;
        let mut found = false;
        for parent in [self.directory.clone(), self.drafts()] {
            if parent.join(name.as_str()).symlink_metadata().is_ok() {
                found = true;
                self.remove_folder(&parent, name)?;
            }
        }
        Ok(found)
    }

    /// In one step for whoever reads.
    fn remove_folder(&self, parent: &Path, name: &Name) -> Result<(), StoreError> {
        let (place, aside) = (parent.join(name.as_str()), unfinished(parent));
        let removed =
            std::fs::rename(&place, &aside).and_then(|()| match aside.symlink_metadata()?.is_dir() {
                true => std::fs::remove_dir_all(&aside),
                false => std::fs::remove_file(&aside),
            });
        removed.map_err(|source| self.unwritten(source))
    }

    /// The current skill of that name, if there is one. Whether a further one may be saved.
    fn replaceable(&self, skill: &Skill) -> Result<Option<Skill>, StoreError> {
        match self.current(&skill.name) {
            Ok(current) => Ok(Some(current)),
            Err(Unreadable::Absent) if folders(&self.directory).count() < SKILLS_MAX => Ok(None),
            Err(Unreadable::Absent) => Err(StoreError::TooManySkills),
            Err(Unreadable::NoCode | Unreadable::Invalid(_)) => Err(StoreError::Occupied(skill.name.clone())),
        }
    }

    /// Writes a folder and puts it in its place. What was there before, where it has been put.
    fn put(&self, parent: &Path, place: &Path, skill: &Skill) -> io::Result<Option<PathBuf>> {
        let staged = unfinished(parent);
        let exists = place.symlink_metadata().is_ok();
        let flags = if exists { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::RENAME_NOREPLACE };
        let put = folder::write(&staged, skill)
            .and_then(|()| Ok(renameat2(AT_FDCWD, &staged, AT_FDCWD, place, flags)?))
            .and_then(|()| File::open(parent)?.sync_all());
        if let Err(error) = put {
            let _ = std::fs::remove_dir_all(&staged);
            return Err(error);
        }
        Ok(exists.then_some(staged))
    }

    /// Puts what was the current version among the older ones, and lets the oldest go.
    fn keep(&self, before: &Path, was: &Skill) -> io::Result<()> {
        let versions = self.versions(&was.name);
        match std::fs::rename(before.join(VERSIONS), &versions) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => files::private_directory(&versions)?,
            moved => moved?,
        }
        let kept = versions.join(was.version.to_string());
        if kept.exists() {
            std::fs::remove_dir_all(&kept)?;
        }
        std::fs::rename(before, kept)?;
        let older = self.older(&was.name);
        let too_many = older.len().saturating_sub(VERSIONS_MAX);
        older
            .iter()
            .take(too_many)
            .try_for_each(|version| std::fs::remove_dir_all(versions.join(version.to_string())))
    }

    fn lock(&self) -> Result<Flock<File>, StoreError> {
        let locked = files::private_directory(&self.directory).and_then(|()| {
            if let Some(client) = &self.client {
                let _ = files::create_for_good(&self.directory.join(CLIENT), client.as_bytes())?;
            }
            let path = self.directory.join(LOCK);
            let file = files::open_to_append(&path)?;
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
        });
        locked.map_err(|source| self.unwritten(source))
    }

    fn unwritten(&self, source: io::Error) -> StoreError {
        StoreError::Unwritten { path: self.directory.clone(), source }
    }

    /// The names of drafts.
    pub(super) fn drafted(&self) -> Vec<String> {
        folders(&self.drafts()).collect()
    }
}

fn unfinished(parent: &Path) -> PathBuf {
    parent.join(format!("{UNFINISHED}{}", uuid::Uuid::now_v7().simple()))
}

/// The names of the entries of a directory that are not hidden and could be skills: folders, and links that are none.
pub(super) fn folders(directory: &Path) -> impl Iterator<Item = String> {
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
    use lockhouse_base::language::Language;

    fn skill(code: &str) -> Skill {
        Skill {
            name: Name::of("weekly_report").expect("a name"),
            description: "Reports: \"a\"".into(),
            tags: vec!["report".into(), "w k".into()],
            language: Language::Python,
            version: 1,
            code: code.into(),
            tests: Some("assert True\n".into()),
        }
    }

    #[test]
    fn versions_follow_one_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("skills"));
        for version in 1..=25 {
            let saved = store.save(&skill(&format!("def f(): return {version}\n"))).expect("saved");
            assert_eq!(saved.version, version);
            assert_eq!(store.current(&saved.name).as_ref(), Ok(&saved));
        }
        let name = skill("").name;
        assert_eq!(store.older(&name), (5..25).collect::<Vec<_>>());
        assert_eq!(store.version(&name, 7).expect("kept").code, "def f(): return 7\n");
        assert_eq!(store.version(&name, 25).expect("kept").code, "def f(): return 25\n");
        assert_eq!(store.version(&name, 3), Err(Unreadable::Absent));
        // The same once more is no version.
        assert_eq!(store.save(&skill("def f(): return 25\n")).expect("saved").version, 25);
        assert_eq!(folders(store.directory()).collect::<Vec<_>>(), ["weekly-report"]);
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
        assert_eq!(store.current(&name), Err(Unreadable::Absent));
    }

    #[test]
    fn a_draft_is_not_the_skill() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("skills"));
        let draft = |code: &str| match store.save_draft(&skill(code)).expect("a draft") {
            Draft::Kept(draft) => draft,
            Draft::Needless(current) => panic!("{current:?} says the same"),
        };
        let first = draft("def f(): return 1\n");
        assert_eq!(store.current(&first.name), Err(Unreadable::Absent));
        let second = draft("def f(): return 2\n");
        assert_eq!(store.draft(&first.name).as_ref(), Ok(&second));
        // Approving the first does not take the second away.
        store.save(&first).expect("saved");
        store.remove_draft(&first).expect("nothing wrong");
        assert_eq!(store.draft(&first.name).as_ref(), Ok(&second));
        store.remove_draft(&second).expect("nothing wrong");
        assert_eq!(store.draft(&first.name), Err(Unreadable::Absent));
        let again = store.save_draft(&first).expect("no error");
        assert_eq!(again, Draft::Needless(store.current(&first.name).expect("saved")));
    }

    #[test]
    fn several_writers_lose_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::at(directory.path().join("skills"));
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
        assert_eq!(store.older(&name), (1..16).collect::<Vec<_>>());
    }
}
