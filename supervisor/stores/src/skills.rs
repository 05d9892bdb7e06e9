//! Saved skills: reusable functions, stored as folders in the Agent Skills format.
//!
//! The user's own skills are in a [`store`]. Directories with shared skills, such as a git checkout, are only
//! read. All files are untrusted ([`skill_folder`]). The policy decides who may save skills. The code of a
//! skill runs in the execution that imports it, with the permissions of that execution.

mod front_matter;
mod ranking;
mod shared_skills;
mod signature;
mod skill;
mod skill_folder;
mod skill_name;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use front_matter::FrontMatterFault;
pub use skill::{Skill, SkillFault};
pub use skill_folder::{FileFault, FolderFault, LoadError};
pub use skill_name::{InvalidSkillName, Name, NameFault};
pub use store::{DraftOutcome, StoreError};

use lockhouse_base::files::check_way;
use lockhouse_cluster::{ItemLock, ItemStore, Sharing, Unavailable};
use lockhouse_policies::{SKILLS, most_similar_name};
use lockhouse_protocol::{Language, ServerName};
use shared_skills::SkillFiles;
use store::{Store, folder_names};

/// Maximum number of configured directories with shared skills.
/// Bound: skills.
pub const DIRECTORIES_MAX: usize = 20;

/// Whether this name is the name of the built-in server `skills`.
pub fn is_skills_server(server: &ServerName) -> bool {
    server.as_str() == SKILLS
}

/// The `[skills]` settings of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSettings {
    pub enabled: bool,
    /// The directory of the user's own skills; `None` if Lockhouse has no state directory, so that no skills can
    /// be saved.
    pub own: Option<PathBuf>,
    /// The directories with shared skills, which are only read. If several skills have the same name, the user's
    /// own skill has precedence, then the one in the directory that is listed first.
    pub shared: Vec<PathBuf>,
}

/// The kind of directory in which a skill is stored: the client's own skills, the drafts, or the given directory of
/// shared skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Own,
    Draft,
    Shared(PathBuf),
}

/// A folder in a directory of skills. Contains the skill, or the reason why it cannot be read.
#[derive(Debug)]
pub struct SkillEntry {
    /// The name of the folder.
    pub folder: String,
    pub origin: Origin,
    pub skill: Result<Skill, LoadError>,
    /// Whether programs cannot import this skill because a directory with higher precedence has a skill of the same
    /// name.
    pub hidden: bool,
}

/// Why a skill cannot be loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillNotFound {
    #[error("the skill {name} cannot be used: {why}")]
    Unusable { name: Name, why: LoadError },
    /// No skill has this name. Contains the error message, with advice such as a similar name or the existing names.
    #[error("{0}")]
    Unknown(String),
}

/// The skills that an AI client can use: the client's own skills and the shared skills.
#[derive(Clone, Debug)]
pub struct Skills {
    /// The store of the AI client's own skills and drafts; `None` if there is no state directory.
    own: Option<Store>,
    shared: Vec<PathBuf>,
    /// What all hosts of a cluster share.
    sharing: Sharing,
}

impl Skills {
    pub fn new(settings: &SkillSettings) -> Self {
        Self {
            own: settings.own.clone().map(Store::new),
            shared: settings.shared.clone(),
            sharing: Sharing::default(),
        }
    }

    /// Returns all stores of skills of this host. `None` if there is no state directory.
    pub fn item_store(&self) -> Option<Arc<dyn ItemStore>> {
        let own = self.own.as_ref()?.directory().to_owned();
        Some(Arc::new(SkillFiles::new(own)))
    }

    /// Returns what all hosts of a cluster share.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Waits until no other host saves this skill, and until this host has its newest version. `None` if this host shares no skills.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn lock(&self, name: &Name) -> Result<Option<ItemLock>, Unavailable> {
        let Some(own) = &self.own else { return Ok(None) };
        self.sharing.item(shared_skills::KIND, SkillFiles::item(own, name)).lock().await
    }

    /// Returns the skills that an authenticated AI client can use: the skills in the client's own store, and the
    /// shared skills. The client cannot import skills that other clients have saved. If `client` is `None`, returns
    /// the skills of the user.
    pub fn for_client(&self, client: Option<&str>) -> Self {
        let Some(client) = client else { return self.clone() };
        Self { own: self.own.as_ref().map(|own| own.for_client(client)), ..self.clone() }
    }

    /// Returns the names of the AI clients that have saved skills.
    pub fn clients(&self) -> Vec<String> {
        self.own.as_ref().map(Store::clients).unwrap_or_default()
    }

    /// Removes all skills that an authenticated AI client has saved. Returns whether there were any.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn forget_client(&self, client: &str) -> std::io::Result<bool> {
        self.own.as_ref().map_or(Ok(false), |own| own.forget_client(client))
    }

    /// Returns the shell command with which a person approves a draft.
    pub fn approve_command(&self, name: &Name) -> String {
        match self.own.as_ref().and_then(Store::client) {
            Some(client) => format!("lockhouse skills approve {name} --client '{client}'"),
            None => format!("lockhouse skills approve {name}"),
        }
    }

    /// Returns the skill that programs import by this name, and where it is stored. Fails if there is none, or if
    /// the folder with the highest precedence is not a valid skill.
    pub fn load(&self, name: &Name) -> Result<(Skill, Origin), SkillNotFound> {
        for (origin, parent) in self.directories() {
            match skill_folder::read(parent, name) {
                Ok(skill) => return Ok((skill, origin)),
                Err(LoadError::Absent) => {}
                Err(why) => return Err(SkillNotFound::Unusable { name: name.clone(), why }),
            }
        }
        Err(SkillNotFound::Unknown(self.not_found_message(name)))
    }

    /// Returns the error message for a name that no importable skill has. If a draft has the name, the message says
    /// how a person approves the draft. Otherwise the message suggests a similar name or lists existing names.
    pub fn not_found_message(&self, name: &Name) -> String {
        if self.own.as_ref().is_some_and(|own| own.draft(name).is_ok()) {
            let approve = self.approve_command(name);
            return format!(
                "the skill {name} is a draft, which cannot be imported until a person reviews it and runs `{approve}`"
            );
        }
        let known: Vec<String> = self.importable().into_iter().map(|skill| skill.name.to_string()).collect();
        let suggestion = match most_similar_name(name.as_str(), known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None if known.is_empty() => "none is saved".into(),
            None => format!("there are: {}", known[..known.len().min(20)].join(", ")),
        };
        format!("there is no skill {name}; {suggestion}")
    }

    /// Returns all valid skills that programs can import.
    pub fn importable(&self) -> Vec<Skill> {
        let usable =
            self.entries().into_iter().filter(|entry| entry.origin != Origin::Draft && !entry.hidden);
        usable.filter_map(|entry| entry.skill.ok()).collect()
    }

    /// Returns the skills that match a query, best first, at most `limit`.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Skill> {
        self.ranked(query, limit, 0)
    }

    /// Returns the skills in a language that a search for tools should show, best first, at most `limit`.
    pub fn relevant(&self, query: &str, limit: usize, language: Language) -> Vec<Skill> {
        let ranked = self.ranked(query, usize::MAX, ranking::RELEVANT);
        ranked.into_iter().filter(|skill| skill.language == language).take(limit).collect()
    }

    fn ranked(&self, query: &str, limit: usize, least: u32) -> Vec<Skill> {
        let mut skills: Vec<Option<Skill>> = self.importable().into_iter().map(Some).collect();
        let all: Vec<Skill> = skills.iter().flatten().cloned().collect();
        ranking::rank(query, &all, least)
            .into_iter()
            .take(limit)
            .filter_map(|index| skills[index].take())
            .collect()
    }

    /// Returns all skill folders and drafts, valid or not, sorted by name. Entries of the same name are in the order of
    /// their precedence.
    pub fn entries(&self) -> Vec<SkillEntry> {
        let mut entries: Vec<SkillEntry> = Vec::new();
        for (origin, parent) in self.directories() {
            for folder in folder_names(parent) {
                let skill = read(parent, &folder);
                let hidden = entries.iter().any(|other| other.folder == folder);
                entries.push(SkillEntry { folder, origin: origin.clone(), skill, hidden });
            }
        }
        for folder in self.own.iter().flat_map(Store::draft_names) {
            let name = Name::from_folder(&folder).map_err(|fault| FolderFault::DraftName(fault).into());
            let skill = name.and_then(|name| self.draft(&name));
            entries.push(SkillEntry { folder, origin: Origin::Draft, skill, hidden: false });
        }
        entries.sort_by(|one, other| one.folder.cmp(&other.folder));
        entries
    }

    /// Returns the directories with skills that programs can import, in the order of their precedence.
    fn directories(&self) -> impl Iterator<Item = (Origin, &Path)> {
        let own = self.own.iter().map(|own| (Origin::Own, own.directory()));
        own.chain(self.shared.iter().map(|shared| (Origin::Shared(shared.clone()), shared.as_path())))
    }

    /// Reads the draft (not yet approved version) of the skill with this name.
    pub fn draft(&self, name: &Name) -> Result<Skill, LoadError> {
        self.own.as_ref().map_or(Err(LoadError::Absent), |own| own.draft(name))
    }

    /// Reads the current version or an older version of a skill in the client's own store.
    pub fn version(&self, name: &Name, version: u32) -> Result<Skill, LoadError> {
        self.own.as_ref().map_or(Err(LoadError::Absent), |own| own.version(name, version))
    }

    /// Returns the version numbers of the older versions of a skill in the client's own store.
    pub fn older_versions(&self, name: &Name) -> Vec<u32> {
        self.own.as_ref().map(|own| own.older_versions(name)).unwrap_or_default()
    }

    /// Saves a skill as the current version, which programs can import, and returns it with its version number. If
    /// the content equals that of the current version, returns the current version and writes nothing.
    pub fn save(&self, skill: &Skill) -> Result<Skill, StoreError> {
        self.store()?.save(skill)
    }

    /// Stores a skill as a draft, which programs cannot import until a person approves it. Stores nothing if the
    /// content equals that of the current version.
    pub fn save_draft(&self, skill: &Skill) -> Result<DraftOutcome, StoreError> {
        self.store()?.save_draft(skill)
    }

    /// Saves a draft as the current version of its skill. Then removes the draft, unless a newer draft has
    /// replaced it.
    pub fn approve(&self, draft: &Skill) -> Result<Skill, StoreError> {
        let store = self.store()?;
        let saved = store.save(draft)?;
        store.remove_draft(draft)?;
        Ok(saved)
    }

    /// Removes a skill from the client's own store, with all of its versions and its draft. Returns whether the store
    /// had the skill or a draft of it. Does not remove a shared skill of this name.
    pub fn remove(&self, name: &Name) -> Result<bool, StoreError> {
        self.store()?.remove(name)
    }

    /// Returns the path of the folder that a skill has, or would have, in the client's own store.
    pub fn own_folder(&self, name: &Name) -> Result<PathBuf, StoreError> {
        Ok(self.store()?.directory().join(name.as_str()))
    }

    /// Writes a skill to a new folder in `directory`, which is created if necessary. Returns the path of the
    /// folder.
    ///
    /// # Errors
    /// Fails if the folder cannot be written or exists already.
    pub fn export(skill: &Skill, directory: &Path) -> std::io::Result<PathBuf> {
        check_way(directory)?;
        std::fs::create_dir_all(directory)?;
        let path = directory.join(skill.name.as_str());
        skill_folder::write(&path, skill).map(|()| path)
    }

    fn store(&self) -> Result<&Store, StoreError> {
        self.own.as_ref().ok_or(StoreError::NoDirectory)
    }
}

/// Reads the skill in the folder `folder` of the directory `parent`. Fails if the name or the content of the
/// folder is not valid.
fn read(parent: &Path, folder: &str) -> Result<Skill, LoadError> {
    let name = Name::from_folder(folder).map_err(|fault| {
        // A folder without a SKILL.md is no skill, so the error must not be about its name.
        match parent.join(folder).join(skill_folder::DOCUMENT).symlink_metadata() {
            Ok(_) => FolderFault::FolderName(fault),
            Err(_) => FolderFault::NoDocument,
        }
    })?;
    skill_folder::read(parent, &name)
}
