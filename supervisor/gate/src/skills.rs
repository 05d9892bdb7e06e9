//! Saved skills: functions that code has kept for later, as folders in the Agent Skills format.
//!
//! This user's own are in a [`store`]; directories that are shared, such as a git checkout, are read and never written. What is
//! read is taken for a stranger's ([`folder`]). Who may save is the policy's to say, and the gate's to ask; what a skill's code
//! may do is what the execution may that imports it, for it runs there like the rest of the program.

mod folder;
mod front_matter;
mod name;
mod search;
mod signature;
mod skill;
mod store;

use std::path::{Path, PathBuf};

pub use folder::{FileFault, FolderFault, Unreadable};
pub use front_matter::FrontMatterFault;
pub use name::{InvalidSkillName, Name, NameFault};
pub use skill::{Skill, SkillFault};
pub use store::{Draft, StoreError};

use lockhouse_policies::{SKILLS, nearest};
use lockhouse_protocol::ServerName;
use store::{Store, folders};

/// Directories that are shared.
pub const DIRECTORIES_MAX: usize = 20;

/// Whether calls to a server of that name are for skills.
pub(super) fn is_skills(server: &ServerName) -> bool {
    server.as_str() == SKILLS
}

/// What is configured of skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSettings {
    pub enabled: bool,
    /// Where what is saved is kept; `None` where no state can be kept.
    pub own: Option<PathBuf>,
    /// Read only. The first one that has a name counts, after our own.
    pub shared: Vec<PathBuf>,
}

/// Where a skill comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Own,
    Draft,
    Shared(PathBuf),
}

/// A folder among skills, whatever is in it.
#[derive(Debug)]
pub struct Entry {
    pub folder: String,
    pub origin: Origin,
    pub skill: Result<Skill, Unreadable>,
    /// Whether another one of the same name counts.
    pub hidden: bool,
}

/// Why a skill cannot be had.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    #[error("the skill {name} cannot be used: {why}")]
    Unusable { name: Name, why: Unreadable },
    /// In words, with what may have been meant.
    #[error("{0}")]
    Unknown(String),
}

/// All skills that are configured.
#[derive(Clone, Debug)]
pub struct Skills {
    own: Option<Store>,
    shared: Vec<PathBuf>,
}

impl Skills {
    pub fn new(settings: &SkillSettings) -> Self {
        Self { own: settings.own.clone().map(Store::at), shared: settings.shared.clone() }
    }

    /// Those of a client that has proven its name: a store of its own beside the one of whoever runs Lockhouse, so that
    /// nobody imports what another client has saved. What is shared is shared with all.
    pub fn of(&self, client: Option<&str>) -> Self {
        let Some(client) = client else { return self.clone() };
        Self { own: self.own.as_ref().map(|own| own.of_client(client)), shared: self.shared.clone() }
    }

    /// The clients that have saved any.
    pub fn clients(&self) -> Vec<String> {
        self.own.as_ref().map(Store::clients).unwrap_or_default()
    }

    /// The command that approves a draft.
    pub fn to_approve(&self, name: &Name) -> String {
        match self.own.as_ref().and_then(Store::client) {
            Some(client) => format!("lockhouse skills approve {name} --client '{client}'"),
            None => format!("lockhouse skills approve {name}"),
        }
    }

    /// The skill that code imports by that name.
    pub fn load(&self, name: &Name) -> Result<(Skill, Origin), NotFound> {
        for (origin, parent) in self.places() {
            match folder::read(parent, name) {
                Ok(skill) => return Ok((skill, origin)),
                Err(Unreadable::Absent) => {}
                Err(why) => return Err(NotFound::Unusable { name: name.clone(), why }),
            }
        }
        Err(NotFound::Unknown(self.no_such(name)))
    }

    /// Words for a name that there is not.
    pub fn no_such(&self, name: &Name) -> String {
        if self.own.as_ref().is_some_and(|own| own.draft(name).is_ok()) {
            let approve = self.to_approve(name);
            return format!(
                "the skill {name} is a draft, which cannot be imported until a person has looked at it and runs `{approve}`"
            );
        }
        let known: Vec<String> = self.usable().into_iter().map(|skill| skill.name.to_string()).collect();
        let told = match nearest(name.as_str(), known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None if known.is_empty() => "none is saved".into(),
            None => format!("there are: {}", known[..known.len().min(20)].join(", ")),
        };
        format!("there is no skill {name}; {told}")
    }

    /// Every skill that code can import.
    pub fn usable(&self) -> Vec<Skill> {
        let usable =
            self.entries().into_iter().filter(|entry| entry.origin != Origin::Draft && !entry.hidden);
        usable.filter_map(|entry| entry.skill.ok()).collect()
    }

    /// Skills that match, the best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Skill> {
        let mut skills: Vec<Option<Skill>> = self.usable().into_iter().map(Some).collect();
        let all: Vec<Skill> = skills.iter().flatten().cloned().collect();
        search::rank(query, &all).into_iter().take(limit).filter_map(|index| skills[index].take()).collect()
    }

    /// Everything that is there, by name; of one name in the order in which they count.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (origin, parent) in self.places() {
            for folder in folders(parent) {
                let skill = read(parent, &folder);
                let hidden = entries.iter().any(|other| other.folder == folder);
                entries.push(Entry { folder, origin: origin.clone(), skill, hidden });
            }
        }
        for folder in self.own.iter().flat_map(Store::drafted) {
            let name = Name::of_folder(&folder).map_err(|fault| FolderFault::DraftName(fault).into());
            let skill = name.and_then(|name| self.draft(&name));
            entries.push(Entry { folder, origin: Origin::Draft, skill, hidden: false });
        }
        entries.sort_by(|one, other| one.folder.cmp(&other.folder));
        entries
    }

    fn places(&self) -> impl Iterator<Item = (Origin, &Path)> {
        let own = self.own.iter().map(|own| (Origin::Own, own.directory()));
        own.chain(self.shared.iter().map(|shared| (Origin::Shared(shared.clone()), shared.as_path())))
    }

    pub fn draft(&self, name: &Name) -> Result<Skill, Unreadable> {
        self.own.as_ref().map_or(Err(Unreadable::Absent), |own| own.draft(name))
    }

    /// One version of a skill of our own.
    pub fn version(&self, name: &Name, version: u32) -> Result<Skill, Unreadable> {
        self.own.as_ref().map_or(Err(Unreadable::Absent), |own| own.version(name, version))
    }

    /// The older versions of a skill of our own.
    pub fn older(&self, name: &Name) -> Vec<u32> {
        self.own.as_ref().map(|own| own.older(name)).unwrap_or_default()
    }

    /// Makes it the current version, which code can import.
    pub fn save(&self, skill: &Skill) -> Result<Skill, StoreError> {
        self.store()?.save(skill)
    }

    /// Keeps it where nothing imports it.
    pub fn save_draft(&self, skill: &Skill) -> Result<Draft, StoreError> {
        self.store()?.save_draft(skill)
    }

    /// Makes exactly this draft the current version.
    pub fn approve(&self, draft: &Skill) -> Result<Skill, StoreError> {
        let store = self.store()?;
        let saved = store.save(draft)?;
        store.remove_draft(draft)?;
        Ok(saved)
    }

    /// Whether there was anything to remove.
    pub fn remove(&self, name: &Name) -> Result<bool, StoreError> {
        self.store()?.remove(name)
    }

    /// Writes a folder that others can use: below `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// Why it could not be written; that there is one already, for instance.
    pub fn export(skill: &Skill, directory: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(skill.name.as_str());
        folder::write(&path, skill).map(|()| path)
    }

    fn store(&self) -> Result<&Store, StoreError> {
        self.own.as_ref().ok_or(StoreError::NoPlace)
    }
}

fn read(parent: &Path, folder: &str) -> Result<Skill, Unreadable> {
    let name = Name::of_folder(folder).map_err(|fault| {
        // A folder of something else needs no words on names.
        match parent.join(folder).join(folder::DOCUMENT).symlink_metadata() {
            Ok(_) => FolderFault::FolderName(fault),
            Err(_) => FolderFault::NoDocument,
        }
    })?;
    folder::read(parent, &name)
}
