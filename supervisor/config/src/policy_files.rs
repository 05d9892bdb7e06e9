//! Finds, loads and writes the policy: the user's file, and the policies that the administrator requires.

use std::path::{Path, PathBuf};

use lockhouse_approvals::PolicyFile;
use lockhouse_base::directories;
use lockhouse_base::text_files::{Draft, read_source, write_target};
use lockhouse_engine::supervisor::ProposalFiles;
use lockhouse_policies::Policy;

use super::placeholders::Environment;
use super::requirements::{Requirements, WatchedFiles};
use super::{ConfigError, Files, file_permissions, search_paths};

/// Loads the policy in use, together with the policies that the administrator requires. Without a policy file, every
/// call is denied, with a hint in the denial's error.
///
/// # Errors
/// [`ConfigError`], with every fault of the policy that cannot be used.
pub fn load_policy(files: &Files) -> Result<Policy, ConfigError> {
    restrict_by_requirements(load_own_policy(files)?)
}

/// Loads the policy of the user, without those that the administrator requires.
///
/// # Errors
/// [`ConfigError`], with every fault of the policy.
pub(super) fn load_own_policy(files: &Files) -> Result<Policy, ConfigError> {
    let load = |path: &Path| -> Result<Policy, ConfigError> {
        file_permissions::refuse_untrusted(path, &files.owners())?;
        Ok(Policy::parse(read_source(path)?)?)
    };
    let own = find_policy(files).map_or_else(|| Ok(Policy::empty()), |path| load(&path))?;
    match proposal_files(files).map(|files| files.proposed).filter(|path| path.exists()) {
        Some(proposed) => Ok(own.restricted_by(load(&proposed)?)),
        None => Ok(own),
    }
}

/// Returns where the policy of an engine of the system is, and the policy that its person proposes. `None` for other processes.
pub(super) fn proposal_files(files: &Files) -> Option<ProposalFiles> {
    let state = directories::state().filter(|_| files.person.is_some())?;
    let approved = policy_path(files).into_iter().chain(find_policy(files)).collect();
    Some(ProposalFiles { proposed: state.join("proposed-policy.toml"), approved })
}

/// Writes a policy file. A new one is readable only by its owner. Replaces an existing file only with `force`.
///
/// # Errors
/// The file cannot be written, or exists already.
pub fn write_policy(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let path = write_target(path)?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)?;
    }
    let draft = Draft::write(&path, text)?;
    if force { draft.publish() } else { draft.publish_new() }
}

/// Returns `own`, restricted by the policies that the administrator requires.
///
/// # Errors
/// [`ConfigError`], with every fault of a required policy that cannot be used.
pub fn restrict_by_requirements(own: Policy) -> Result<Policy, ConfigError> {
    let requirements = Requirements::load(&Environment::from_process())?;
    let policies = requirements.policies(&mut WatchedFiles::default())?;
    Ok(policies.into_iter().fold(own, Policy::restricted_by))
}

/// Returns the path of the policy file in use, if one exists.
pub fn find_policy(files: &Files) -> Option<PathBuf> {
    search_paths::config_file(files.policy.as_deref(), "policy.toml")
}

/// Returns the path to which `lockhouse policy init` writes the policy file: the one of `--policy`, or else
/// `policy.toml` in the user's configuration directory.
pub fn policy_path(files: &Files) -> Result<PathBuf, ConfigError> {
    let default = || directories::configuration().map(|directory| directory.join("policy.toml"));
    files.policy.clone().or_else(default).ok_or(ConfigError::NoPolicyDirectory)
}

/// Returns the path of the policy file that a command may change: the one of `--policy`, or else `policy.toml` in the
/// user's configuration directory. The file need not exist.
///
/// # Errors
/// [`ConfigError`] if users other than its owner can write the file, or if the system-wide policy is in use: a new file
/// of this user would replace it as a whole.
pub fn editable_policy(files: &Files) -> Result<PathBuf, ConfigError> {
    let path = policy_path(files)?;
    match find_policy(files) {
        Some(used) if used != path => Err(ConfigError::SystemWidePolicy { path: used }),
        _ if path.exists() => file_permissions::refuse_untrusted(&path, &files.owners()).map(|()| path),
        _ => Ok(path),
    }
}

/// Returns the policy file in use if it is the one of `--policy`, or else `policy.toml` in the user's configuration
/// directory. `None` if the system-wide policy file or no policy file is in use.
pub(super) fn own_policy(files: &Files) -> Option<PolicyFile> {
    let own = || directories::configuration().map(|directory| directory.join("policy.toml"));
    let path = files.policy.clone().or_else(own)?;
    (find_policy(files).as_ref() == Some(&path)).then(|| PolicyFile::new(path))
}
