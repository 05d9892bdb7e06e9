//! The skills that all hosts of a cluster share: each has copies of them in its own stores. Drafts and older versions stay on the host
//! that made them.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use lockhouse_base::files::FileVersion;
use lockhouse_base::principal::owner_of_name;
use lockhouse_cluster::ItemStore;
use lockhouse_protocol::Language;
use serde::{Deserialize, Serialize};

use super::skill::Skill;
use super::skill_folder::LoadError;
use super::skill_name::Name;
use super::store::{Store, folder_names};

pub(super) const KIND: &str = "skills";
/// Begins the names of items of the user's own store.
const OWN: &str = "own";

/// All stores of skills of this host: the user's own one and those of AI clients. An item is `OWNER/SKILL`. The owner is `own`, or the
/// digest of an AI client's name.
#[derive(Debug)]
pub(super) struct SkillFiles(Store);

/// A skill as hosts exchange it.
#[derive(Serialize, Deserialize)]
struct Content {
    /// The name of the AI client. `None` for a skill of the user.
    client: Option<String>,
    description: String,
    tags: Vec<String>,
    language: Language,
    version: u32,
    code: String,
    tests: Option<String>,
}

impl SkillFiles {
    pub(super) fn new(own: PathBuf) -> Self {
        Self(Store::new(own))
    }

    /// Returns the name of the item of a skill in a store.
    pub(super) fn item(store: &Store, name: &Name) -> String {
        match store.client() {
            Some(client) => format!("{}/{name}", owner_of_name(client).to_hex()),
            None => format!("{OWN}/{name}"),
        }
    }

    /// Returns the store and the skill that the name of an item means. The name may come from another host.
    fn place(&self, item: &str) -> io::Result<(Store, Name)> {
        let (owner, folder) = item.split_once('/').ok_or(ErrorKind::InvalidInput)?;
        let name = Name::from_folder(folder).map_err(|_| ErrorKind::InvalidInput)?;
        let is_digest = || owner.bytes().all(|byte| byte.is_ascii_hexdigit());
        match owner {
            OWN => Ok((self.0.clone(), name)),
            owner if is_digest() => Ok((self.0.in_folder(owner)?, name)),
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns the store that a skill of another host belongs to.
    fn store_of(&self, item: &str, client: Option<&str>) -> io::Result<Store> {
        let owner = item.split('/').next().unwrap_or_default();
        match client {
            None if owner == OWN => Ok(self.0.clone()),
            Some(client) if owner_of_name(client).to_hex() == owner => Ok(self.0.for_client(client)),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

impl ItemStore for SkillFiles {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn list(&self) -> io::Result<HashMap<String, FileVersion>> {
        let mut stores = vec![(OWN.to_owned(), self.0.clone())];
        for folder in self.0.client_folders() {
            let store = self.0.in_folder(&folder)?;
            stores.push((folder, store));
        }
        let mut items = HashMap::new();
        for (owner, store) in stores {
            let names = folder_names(store.directory()).filter_map(|folder| Name::from_folder(&folder).ok());
            items.extend(names.filter_map(|name| {
                let version = FileVersion::of(&store.directory().join(name.as_str()))?;
                Some((format!("{owner}/{name}"), version))
            }));
        }
        Ok(items)
    }

    fn version(&self, item: &str) -> Option<FileVersion> {
        let (store, name) = self.place(item).ok()?;
        FileVersion::of(&store.directory().join(name.as_str()))
    }

    fn read(&self, item: &str) -> io::Result<Option<Vec<u8>>> {
        let (store, name) = self.place(item)?;
        let skill = match store.current(&name) {
            Ok(skill) => skill,
            Err(LoadError::Absent) => return Ok(None),
            Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
        };
        let Skill { description, tags, language, version, code, tests, .. } = skill;
        let client = store.client().map(str::to_owned);
        let content = Content { client, description, tags, language, version, code, tests };
        Ok(Some(serde_json::to_vec(&content)?))
    }

    fn write(&self, item: &str, content: Option<&[u8]>) -> io::Result<()> {
        let (store, name) = self.place(item)?;
        let Some(content) = content else {
            // Removing takes a lock, for which the store would be created.
            return match store.current(&name) {
                Err(LoadError::Absent) => Ok(()),
                _ => store.remove(&name).map(drop).map_err(io::Error::other),
            };
        };
        let content: Content = serde_json::from_slice(content)?;
        let store = self.store_of(item, content.client.as_deref())?;
        let Content { description, tags, language, version, code, tests, .. } = content;
        let skill = Skill { name, description, tags, language, version, code, tests };
        skill.validate().map_err(|fault| io::Error::new(ErrorKind::InvalidData, fault))?;
        store.replace(&skill).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(code: &str) -> Skill {
        Skill {
            name: Name::parse("weekly_report").expect("a name"),
            description: "Reports".into(),
            tags: vec!["report".into()],
            language: Language::Python,
            version: 1,
            code: code.into(),
            tests: None,
        }
    }

    #[test]
    fn a_skill_of_one_host_becomes_that_of_another_one() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let (one, other) = (SkillFiles::new(one.path().into()), SkillFiles::new(other.path().into()));
        let store = one.0.for_client("token:a");
        store.save(&skill("def f(): return 1\n")).expect("saved");
        let saved = store.save(&skill("def f(): return 2\n")).expect("saved");
        one.0.save(&skill("def f(): return 3\n")).expect("saved");
        let items = one.list().expect("a list");
        assert_eq!(items.len(), 2);
        for item in items.keys() {
            let content = one.read(item).expect("read").expect("there");
            other.write(item, Some(&content)).expect("written");
            assert_eq!(other.read(item).expect("read"), Some(content));
        }
        let (copies, name) = (other.0.for_client("token:a"), saved.name.clone());
        assert_eq!(copies.current(&name), Ok(saved));
        assert_eq!(copies.save(&skill("def f(): return 4\n")).expect("saved").version, 3);
        assert_eq!(copies.older_versions(&name), [2]);

        let item = SkillFiles::item(&copies, &name);
        other.write(&item, None).expect("removed");
        assert_eq!(copies.current(&name), Err(LoadError::Absent));
        assert!(other.0.current(&name).is_ok(), "control: the user's own skill stays");
        other.write(&item, None).expect("nothing to remove");
        // A client that was forgotten has none.
        assert!(other.0.forget_client("token:a").expect("removed"));
        assert_eq!(other.read(&item).expect("no error"), None);
        other.write(&item, None).expect("nothing to remove");
        assert_eq!(other.0.clients(), Vec::<String>::new());
    }

    #[test]
    fn a_skill_is_written_to_the_store_of_its_client_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = SkillFiles::new(directory.path().into());
        files.0.for_client("token:a").save(&skill("def f(): return 1\n")).expect("saved");
        let item = files.list().expect("a list").into_keys().next().expect("an item");
        let content = String::from_utf8(files.read(&item).expect("read").expect("there")).expect("text");
        for (item, content) in [
            (item.as_str(), content.replace("token:a", "token:b")),
            (item.as_str(), content.replace("def f(): return 1\\n", "")),
            (item.as_str(), "{}".to_owned()),
            ("own/../x", content.clone()),
            ("own/.drafts", content.clone()),
            ("weekly-report", content.clone()),
        ] {
            assert!(files.write(item, Some(content.as_bytes())).is_err(), "{item}: {content}");
        }
        assert_eq!(files.0.clients(), ["token:a"]);
        assert_eq!(files.list().expect("a list").len(), 1);
    }
}
