//! A host on which an engine of the system runs code for each person, in an account of its own: with `engine = "system"` in
//! the requirements, no process of a person has an engine.

use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::is_in_user_namespace;
use nix::unistd::{Uid, geteuid};
use toml::Spanned;

use super::Requirements;
use super::reader::Reader;
use crate::error::ConfigError;
use crate::placeholders::Environment;

/// The directory with a directory for each person, in which the sockets of that person's engine are.
const DIRECTORY: &str = "/run/lockhouse-engines";
/// The accounts of services: those below the first number, and the dynamic ones of systemd. From
/// <https://systemd.io/UIDS-GIDS/>.
const FIRST_PERSON: u32 = 1_000;
const DYNAMIC_SERVICES: std::ops::RangeInclusive<u32> = 61_184..=65_519;

/// The engine of the system that runs code for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemEngine {
    person: Uid,
}

impl SystemEngine {
    /// Returns the engine for the account of this process. `None` if processes of this account have engines of their own.
    ///
    /// # Errors
    /// [`ConfigError`] if the requirements cannot be used. Lockhouse then serves nothing.
    pub fn of_this_account() -> Result<Option<Self>, ConfigError> {
        let requirements = Requirements::load(&Environment::from_process())?;
        Ok(requirements.system_engine().map(|_| Self { person: geteuid() }))
    }

    /// Returns the engines that a process of this account may operate: that of this person, or those of all people for root.
    /// They need not exist.
    pub fn operated_by_this_account() -> Vec<Self> {
        if !geteuid().is_root() {
            return vec![Self { person: geteuid() }];
        }
        let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
        let person = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.filter_map(person).map(|person| Self { person: Uid::from_raw(person) }).collect()
    }

    /// Returns the engine for a person. It need not exist.
    pub fn of_person(person: Uid) -> Self {
        Self { person }
    }

    pub fn person(self) -> Uid {
        self.person
    }

    /// Returns the directory in which the sockets of this engine are.
    pub fn directory(self) -> PathBuf {
        Path::new(DIRECTORY).join(self.person.to_string())
    }
}

impl Requirements {
    /// Returns the requirements file that leaves the engines of people to the system. `None` if there is none, or if the account
    /// of this process is not that of a person.
    fn system_engine(&self) -> Option<&str> {
        let requirement = self.0.iter().find(|requirement| requirement.has_system_engine)?;
        // Whoever made a user namespace has chosen the numbers of its accounts.
        (is_person(geteuid()) || is_in_user_namespace()).then_some(requirement.path.as_str())
    }

    /// # Errors
    /// [`ConfigError::SystemEngine`] if a process of this account may not have an engine.
    pub(crate) fn permit_engine(&self) -> Result<(), ConfigError> {
        match self.system_engine() {
            Some(path) => Err(ConfigError::SystemEngine { path: PathBuf::from(path) }),
            None => Ok(()),
        }
    }
}

/// Whether an account is that of a person, and not that of a service.
pub(super) fn is_person(account: Uid) -> bool {
    account.as_raw() >= FIRST_PERSON && !DYNAMIC_SERVICES.contains(&account.as_raw())
}

impl Reader<'_> {
    pub(super) fn engine(&mut self, engine: &Spanned<String>) {
        if engine.get_ref() != "system" {
            self.add_fault(engine.span(), "expected \"system\", or no such key");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_no_people() {
        for (account, expected) in [
            (0, false),
            (999, false),
            (1_000, true),
            (60_000, true),
            (61_184, false),
            (65_519, false),
            (100_000, true),
        ] {
            assert_eq!(is_person(Uid::from_raw(account)), expected, "{account}");
        }
    }
}
