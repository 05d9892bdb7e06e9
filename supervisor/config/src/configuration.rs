//! The configuration of a running process: the user's part and the administrator's part, each of which can be replaced alone.

use std::path::PathBuf;

use lockhouse_policies::Policy;

use super::error::ConfigError;
use super::files::Files;
use super::placeholders::Environment;
use super::policy_files::load_own_policy;
use super::requirements::{FileState, Requirements, WatchedFiles};
use super::settings::Settings;
use super::user_part::UserPart;

/// The settings and the policy of a process, and what is needed to replace a part of them.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub settings: Settings,
    /// The user's policy, restricted by those that the administrator requires.
    pub policy: Policy,
    own_policy: Policy,
    required_policies: Vec<Policy>,
    watched: WatchedFiles,
}

/// The keys of the configuration that requirements set, for a process without an engine.
#[derive(Debug)]
pub struct RequiredKeys {
    requirements: Requirements,
    watched: WatchedFiles,
}

impl RequiredKeys {
    /// Loads the administrator's requirements.
    ///
    /// # Errors
    /// [`ConfigError`] if the requirements cannot be used.
    pub fn load() -> Result<Self, ConfigError> {
        let watched = Requirements::watch()?;
        Ok(Self { requirements: Requirements::load(&Environment::from_process())?, watched })
    }

    /// Returns whether the requirements have changed since the last call and set other keys in these tables.
    ///
    /// # Errors
    /// [`ConfigError`] if the requirements cannot be used.
    pub fn have_changed(&mut self, tables: &[&str]) -> Result<bool, ConfigError> {
        if !self.watched.have_changed() {
            return Ok(false);
        }
        let watched = Requirements::watch()?;
        let requirements = self.requirements.load_again(&Environment::from_process())?;
        let is_other = !requirements.set_equally(&self.requirements, tables);
        (self.requirements, self.watched) = (requirements, watched);
        Ok(is_other)
    }
}

/// What requirements files look like at one moment. Two equal values with a pause between them mean that nobody is writing
/// the files.
#[derive(Debug, PartialEq, Eq)]
pub struct RequirementsState(Vec<FileState>);

impl Configuration {
    /// Loads the user's files and the administrator's requirements. A process of root makes it known on the host that
    /// requirements apply to it.
    ///
    /// # Errors
    /// [`ConfigError`] for the first file that cannot be used, with all faults of that file.
    pub fn load(files: &Files) -> Result<Self, ConfigError> {
        let user = UserPart::load(files)?;
        let mut watched = Requirements::watch()?;
        let requirements = Requirements::load(&user.environment)?;
        let settings = Settings::combine(files, user, requirements)?;
        let own_policy = load_own_policy(files)?;
        let required_policies = settings.requirements.policies(&mut watched)?;
        settings.requirements.mark_managed();
        Ok(Self::new(settings, own_policy, required_policies, watched))
    }

    /// Returns this configuration if a process of this account may have an engine.
    ///
    /// # Errors
    /// [`ConfigError::SystemEngine`] if the requirements leave that to the engine of the system.
    pub fn for_engine(self) -> Result<Self, ConfigError> {
        self.settings.requirements.permit_engine().map(|()| self)
    }

    fn new(
        settings: Settings,
        own_policy: Policy,
        required_policies: Vec<Policy>,
        watched: WatchedFiles,
    ) -> Self {
        let policy = required_policies.iter().cloned().fold(own_policy.clone(), Policy::restricted_by);
        Self { settings, policy, own_policy, required_policies, watched }
    }

    /// Reads the user's files again, and keeps the requirements.
    ///
    /// # Errors
    /// As [`Self::load`], for the user's files.
    pub fn with_files_of_user(&self, files: &Files) -> Result<Self, ConfigError> {
        let user = UserPart::load(files)?;
        let settings = Settings::combine(files, user, self.settings.requirements.clone())?;
        let own_policy = load_own_policy(files)?;
        Ok(Self::new(settings, own_policy, self.required_policies.clone(), self.watched.clone()))
    }

    /// Returns the user's part of this configuration with the requirements of `other`.
    ///
    /// # Errors
    /// [`ConfigError`] if the requirements do not fit the configuration.
    pub fn with_requirements_of(&self, other: &Self) -> Result<Self, ConfigError> {
        let settings = self.settings.with_requirements(other.settings.requirements.clone())?;
        let Self { own_policy, .. } = self;
        Ok(Self::new(settings, own_policy.clone(), other.required_policies.clone(), other.watched.clone()))
    }

    /// Reads the requirements and their policies again, and keeps the user's part: no file of the user is read.
    ///
    /// # Errors
    /// [`ConfigError`] if the requirements cannot be used. Then nothing may run any more.
    pub fn with_requirements(&self) -> Result<Self, ConfigError> {
        let mut watched = Requirements::watch()?;
        let requirements = self.settings.requirements.load_again(&self.settings.user.environment)?;
        requirements.permit_engine()?;
        let required_policies = requirements.policies(&mut watched)?;
        requirements.mark_managed();
        let settings = self.settings.with_requirements(requirements)?;
        Ok(Self::new(settings, self.own_policy.clone(), required_policies, watched))
    }

    /// Whether a requirements file, or a policy that one names, has changed since it was read. Requirements stay in force if
    /// their file disappears: see [`Self::missing_requirements`].
    pub fn requirements_have_changed(&mut self) -> bool {
        self.watched.have_changed()
    }

    /// Returns what the requirements files look like now.
    pub fn requirements_state(&self) -> RequirementsState {
        RequirementsState(self.watched.look())
    }

    /// Returns the requirements files and policies that have disappeared.
    pub fn missing_requirements(&self) -> Vec<PathBuf> {
        self.watched.missing().into_iter().map(ToOwned::to_owned).collect()
    }
}
